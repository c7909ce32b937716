# SPDX-License-Identifier: Apache-2.0
"""ImageFolder beside torchvision.datasets.ImageFolder: the same samples, labels and classes, and its errors."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import stoker
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision.datasets import ImageFolder

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def touch(root: Path | bytes, *names: str | bytes) -> None:
    """Files of one byte, with the folders that they need."""
    for name in names:
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"x")


def assert_same(root: Path, comparisons: Callable[[int], None]) -> stoker.Dataset:
    expected = ImageFolder(str(root))
    got = stoker.Dataset(root)
    assert got.format == "imagefolder"
    assert got.classes == expected.classes
    assert [got.where(i) for i in range(len(got))] == [path for path, _ in expected.samples]
    assert got.labels.tolist() == expected.targets
    comparisons(len(got))
    return got


def test_real_photos_are_torchvisions_samples(data_dir: Path, comparisons) -> None:
    got = assert_same(data_dir / "photos", comparisons)
    assert len(got) == len(got.classes) == 500
    assert got.bytes(7) == Path(got.where(7)).read_bytes()


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(
            ["10/a.jpg", "9/a.jpg", "B/a.jpg", "a/a.jpg", "_/a.jpg", "é/a.jpg"], id="bytes, not numbers or locale"
        ),
        pytest.param([".hidden/a.jpg", "a/.b.jpg", "a/._x.jpg", "a/.jpg", "a/..jpg"], id="hidden files and folders"),
        pytest.param(["a/x.jpg", "a/.DS_Store", ".DS_Store", "a/notes.txt", "root.jpg", "a/jpg"], id="other files"),
        pytest.param([f"a/{i}{e}" for i, e in enumerate(EXTENSIONS)], id="every extension"),
        pytest.param([f"a/{i}{e.upper()}" for i, e in enumerate(EXTENSIONS)] + ["a/x.JpEg"], id="in any case"),
        pytest.param(["a/x.gif", "a/x.jpg.txt", "a/xjpg", "a/x.jpg ", "a/x.png"], id="near misses"),
        pytest.param(
            ["a/b/c/d/e.jpg", "a/z.jpg", "a/b.jpg", "a/b/a.jpg", "a/b-c/a.jpg", "a/b c/a.jpg"], id="any depth"
        ),
        pytest.param(
            ["a/new\nline.jpg", "a/tab\t.jpg", "a/ .jpg", "a/%s.jpg", "a/\\.jpg", "a/'\".jpg"], id="odd names"
        ),
        pytest.param([b"a/\xff.jpg", b"a/\xe9t\xe9.jpg", b"\xff/1.jpg", "a/été.jpg"], id="names that are no UTF-8"),
        pytest.param(
            [
                b"a/\x80.jpg",
                "a/\ue000.jpg",
                "a/😀.jpg",
                "a/\ud7ff.jpg",
                b"a/\xf0\x9f.jpg",
                b"a/\xed\xa0\x80.jpg",
                b"a/\xe1\x80.jpg",
                b"a/\xe1\x80\x80.jpg",
                b"a/\xc0\xaf.jpg",
                b"a/\xf4\x90\x80\x80.jpg",
                b"a/\xe1\x80",
            ],
            id="bytes between code points",
        ),
        pytest.param(["a/" + "n" * 251 + ".jpg", "a/" + "/".join(["d" * 200] * 10) + "/x.jpg"], id="long names"),
        pytest.param(["a/x.jpg/y.png", "a/z.jpg"], id="a folder named like an image"),
    ],
)
def test_names(names: list[str | bytes], tmp_path: Path, comparisons) -> None:
    touch(tmp_path, *names)
    assert_same(tmp_path, comparisons)


PIECES = st.sampled_from(
    [b"a", b"B", b"z", b"-", b".", b"\x80", b"\xc3\xa9", b"\xee\x80\x80", b"\xf0\x9f\x98\x80", b"\xe1", b"\xff"]
)
NAME = st.lists(PIECES, min_size=1, max_size=4).map(b"".join).filter(lambda name: name not in (b".", b".."))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAME, NAME, NAME), min_size=1, max_size=12, unique=True))
def test_order_of_any_names(tmp_path_factory, triples) -> None:
    root = tmp_path_factory.mktemp("names")
    for class_name, folder, name in triples:
        touch(
            root, b"c" + class_name + b"/" + name + b".jpg", b"c" + class_name + b"/" + folder + b"/" + name + b".png"
        )
    assert_same(root, lambda count: None)


def test_links_are_followed(tmp_path: Path, comparisons) -> None:
    elsewhere = tmp_path / "elsewhere"
    touch(elsewhere, "x.jpg", "deep/y.png")
    root = tmp_path / "root"
    touch(root, "a/1.jpg")
    (root / "b").symlink_to(elsewhere)  # a class
    (root / "a" / "2").symlink_to(elsewhere / "deep")  # a folder in a class
    (root / "a" / "3.jpg").symlink_to(elsewhere / "x.jpg")  # a file
    (root / "a" / "4.jpg").symlink_to(elsewhere / "nothing")  # a file that is not there: found when it is read
    (root / "c").symlink_to(tmp_path / "nothing")  # no class
    (root / "a" / "5.jpg").symlink_to("5.jpg")  # a link to itself
    got = assert_same(root, comparisons)
    with pytest.raises(stoker.ReadError, match=r"4.jpg: No such file"):
        got.decode([got.where(i).endswith("4.jpg") for i in range(len(got))].index(True))


@pytest.mark.parametrize("link", ["a/up", "a/b/up", "up"])
def test_links_that_lead_back_up_are_refused(link: str, tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg", "a/b/x.jpg")
    (tmp_path / link).symlink_to(tmp_path)
    with pytest.raises(stoker.DataError, match=r"leads back to a folder above it"):
        stoker.Dataset(tmp_path)


def test_many_folders_within_each_other(tmp_path: Path, comparisons) -> None:
    touch(tmp_path, "a/" + "d/" * 200 + "x.jpg")
    assert_same(tmp_path, comparisons)
    touch(tmp_path, "a/" + "d/" * 300 + "x.jpg")
    with pytest.raises(stoker.LimitError, match=r"more than 256 folders within each other"):
        stoker.Dataset(tmp_path)


def assert_both_refuse(root: Path, match: str) -> None:
    with pytest.raises(FileNotFoundError):
        ImageFolder(str(root))
    with pytest.raises(stoker.DataError, match=match) as error:
        stoker.Dataset(root)
    assert str(root) in str(error.value) and "\n" not in str(error.value)


def test_classes_without_images_are_named(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg", "b/x.txt", "d/x.jpg")
    (tmp_path / "c").mkdir()
    assert_both_refuse(tmp_path, "no valid file for the classes b, c ")
    for i in range(200):
        (tmp_path / f"empty-{i:03}").mkdir()
    assert_both_refuse(tmp_path, "for the classes b, c, empty-000, .* and [0-9]+ more")


def test_a_folder_named_like_an_image_is_no_sample(tmp_path: Path) -> None:
    (tmp_path / "a" / "x.jpg").mkdir(parents=True)
    assert_both_refuse(tmp_path, "no valid file for the classes a ")


def test_no_class_folders(tmp_path: Path) -> None:
    touch(tmp_path, "x.jpg")
    assert_both_refuse(tmp_path, "any class folder")


def test_an_empty_folder(tmp_path: Path) -> None:
    assert_both_refuse(tmp_path, "the folder is empty")


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(stoker.ReadError, match=r"absent: No such file or directory"):
        stoker.Dataset(tmp_path / "absent")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(stoker.ReadError, match=f"loop: {os.strerror(errno.ELOOP)}"):
        stoker.Dataset(tmp_path / "loop")


@pytest.mark.parametrize(
    "content, kind",
    [
        (b"", "an empty file"),
        (b"\xff\xd8\xff\xe0" + bytes(99), "a JPEG image"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "a PNG image"),
        (b"PK\x03\x04" + bytes(99), "a zip archive"),
        (bytes(257) + b"ustar" + bytes(300), "a tar archive"),
        (b"\x1f\x8b\x08\x00" + bytes(99), "a gzip file"),
        (b"\n <!DOCTYPE HTML><html>", "an HTML page"),
        (b"just words\n", "text"),
        (b"\x00\x01\x02\x03\x04" * 50, "unknown bytes"),
    ],
)
def test_a_file_that_is_no_dataset_is_named(content: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "something"
    path.write_bytes(content)
    with pytest.raises(stoker.UnsupportedError, match=f"something: {kind}.*not a dataset .looked for: .*class folders"):
        stoker.Dataset(path)


def test_pipes_and_devices_are_no_dataset_and_no_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(stoker.UnsupportedError, match=r"pipe: a named pipe, not a dataset"):
        stoker.Dataset(tmp_path / "pipe")
    with pytest.raises(stoker.UnsupportedError, match=r"null: a device, not a dataset"):
        stoker.Dataset("/dev/null")
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / "x.jpg")
    dataset = stoker.Dataset(tmp_path)
    with pytest.raises(stoker.ReadError, match=r"x.jpg: a named pipe, not a file"):
        dataset.decode(0)


def opened_by_another(path: Path) -> str:
    """The error, if any, of opening a dataset as a user who may not read everything."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        message = "the child failed"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            message = repr(stoker.Dataset(path))
        except BaseException as error:
            message = str(error)
        finally:
            os.write(writing, message.encode("utf-8", "replace"))
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        message = pipe.read().decode()
    os.waitpid(child, 0)
    return message


@pytest.mark.parametrize("locked", ["", "b", "b/below", "file.bin", "elsewhere"])
def test_a_folder_without_read_permission(locked: str) -> None:
    """Where torchvision passes over such a folder in silence, and its samples with it."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        top = Path(name)
        top.chmod(0o755)
        touch(top, "set/a/x.jpg", "set/b/below/x.jpg", "set/c/x.jpg", "elsewhere/below/x.jpg")
        (top / "set" / "file.bin").write_bytes(bytes(3073))
        (top / "set" / "link").symlink_to(top / "elsewhere" / "below")
        path = top / ("elsewhere" if locked == "elsewhere" else "set/" + locked)
        opened = path if locked == "file.bin" else top / "set"
        assert "imagefolder, 4 samples" in opened_by_another(top / "set")
        path.chmod(0)
        message = opened_by_another(opened)
        path.chmod(0o755)
        assert "Permission denied" in message
        assert str(opened / "link" if locked == "elsewhere" else path) in message


def test_files_that_vanish_grow_or_are_cut_after_opening(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in "123":
        Image.new("RGB", (8, 8), "red").save(tmp_path / "a" / f"{name}.png")
    dataset = stoker.Dataset(tmp_path)
    (tmp_path / "a" / "1.png").unlink()
    with pytest.raises(stoker.ReadError, match=r"1.png: No such file"):
        dataset.decode(0)
    (tmp_path / "a" / "2.png").write_bytes(b"")
    with pytest.raises(stoker.DataError, match=r"2.png: the file is empty"):
        dataset.decode(1)
    Image.new("RGB", (90, 80), "blue").save(tmp_path / "a" / "3.png", compress_level=0)
    assert dataset.decode(2).shape == (80, 90, 3)
    (tmp_path / "a" / "3.png").unlink()
    (tmp_path / "a" / "3.png").mkdir()
    with pytest.raises(stoker.ReadError, match=r"3.png: Is a directory"):
        dataset.decode(2)


def test_the_working_folder_may_change(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "set" / "a").mkdir(parents=True)
    Image.new("RGB", (8, 8), "red").save(tmp_path / "set" / "a" / "x.png")
    monkeypatch.chdir(tmp_path)
    dataset = stoker.Dataset("set")
    monkeypatch.chdir("/")
    assert dataset.where(0) == "set/a/x.png"
    assert dataset.decode(0).shape == (8, 8, 3)


def test_splits_and_coarse_labels_that_are_not_there(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg")
    assert len(stoker.Dataset(tmp_path, split="all")) == 1
    for split in ("train", "test"):
        with pytest.raises(stoker.SettingError, match=r"part is told apart"):
            stoker.Dataset(tmp_path, split=split)
    with pytest.raises(stoker.SettingError, match=r"coarse labels are CIFAR-100's"):
        stoker.Dataset(tmp_path, coarse_labels=True)


def test_lower_case_does_not_follow_the_locale(tmp_path: Path) -> None:
    """Turkish has no i for I in lower case."""
    touch(tmp_path, "a/x.TIF", "a/y.TIFF")
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}; import locale, stoker\n"
        "for name in ('tr_TR.UTF-8', 'tr_TR', 'C.UTF-8'):\n"
        "    try: locale.setlocale(locale.LC_ALL, name)\n"
        "    except locale.Error: continue\n"
        "    assert len(stoker.Dataset(sys.argv[1])) == 2, name\n"
    )
    subprocess.run([sys.executable, "-B", "-c", script, str(tmp_path)], check=True)


def test_index_is_lean(tmp_path: Path) -> None:
    """8 million paths must fit: a sample takes 12 bytes and its name, not a path's."""
    count, name = 60_000, "n01440764_000000.JPEG"
    class_folder = tmp_path / ("long-class-name-" * 10)
    class_folder.mkdir()
    (class_folder / name).write_bytes(b"")
    for i in range(1, count):
        os.link(class_folder / name, class_folder / f"n01440764_{i:06}.JPEG")
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}; import stoker\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "stoker.Dataset(sys.argv[2]); before = resident(); a = stoker.Dataset(sys.argv[1])\n"
        "assert len(a) == 60_000; print(resident() - before)\n"
    )
    small = tmp_path / "small"
    touch(small, "a/x.jpg")
    root = tmp_path / "root"
    root.mkdir()
    class_folder.rename(root / class_folder.name)
    try:
        run = subprocess.run(
            [sys.executable, "-B", "-c", script, str(root), str(small)], check=True, capture_output=True, text=True
        )
    except OSError as error:  # no such memory figures here
        pytest.skip(str(error))
    assert int(run.stdout) < count * (12 + len(name) + 1 + 40)  # 40: what sorting takes meanwhile, and pages in part


def test_listing_while_files_come_and_go(tmp_path: Path) -> None:
    """No crash and no hang; every sample that is listed was there at some time."""
    touch(tmp_path, "a/keep.jpg", "b/keep.jpg")
    over = time.monotonic() + 1.0
    draw = random.Random(1)

    def change() -> None:
        while time.monotonic() < over:
            path = tmp_path / "ab"[draw.randrange(2)] / f"{draw.randrange(300)}.jpg"
            if draw.random() < 0.5:
                path.write_bytes(b"x")
            else:
                path.unlink(missing_ok=True)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        while time.monotonic() < over:
            dataset = stoker.Dataset(tmp_path)
            places = [dataset.where(i) for i in range(len(dataset))]
            assert len(set(places)) == len(places) >= 2
    finally:
        thread.join()


def test_labels_of_a_subset_and_a_concatenation(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{c}/{i}.jpg" for c in "abc" for i in range(4)))
    whole = stoker.Dataset(tmp_path)
    part = whole.subset([11, 0, 0, 5])
    both = stoker.Dataset.concat([part, whole])
    assert part.labels.tolist() == [2, 0, 0, 1]
    assert np.array_equal(both.labels, np.concatenate([part.labels, whole.labels]))
    assert both.where(0) == whole.where(11) and both.where(5) == whole.where(1)
    assert both.classes == ["a", "b", "c"]
