# SPDX-License-Identifier: Apache-2.0
"""The kept index of an ImageFolder: after any change to the files, or to the index, the listing is torchvision's."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import stoker
from torchvision.datasets import ImageFolder

MARGIN = 3.2  # seconds: younger folders are not indexed
HEADER = struct.Struct("<8sIIQQQQQQQQQ")
MASK = 2**64 - 1


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def listing(root: Path, index: str = "auto") -> object:
    """Classes and samples, or the error."""
    try:
        dataset = stoker.Dataset(root, index=index)  # type: ignore[arg-type]
    except stoker.StokerError as error:
        return str(error)
    return dataset.classes, [(dataset.where(i), dataset.label(i)) for i in range(len(dataset))]


def torchvisions(root: Path) -> object:
    try:
        folder = ImageFolder(str(root))
    except OSError:  # FileNotFoundError: a class without images
        return None
    return folder.classes, folder.samples


def assert_torchvisions(root: Path, comparisons: Callable[[int], None], index: str = "auto") -> None:
    expected, got = torchvisions(root), listing(root, index)
    if expected is None or "leads back" in str(got):  # torchvision goes round 40 times
        assert isinstance(got, str) and got == listing(root, "off")
    else:
        assert got == expected
        comparisons(len(got[1]))  # type: ignore[index]


@pytest.fixture
def cache(tmp_path_factory, monkeypatch) -> Path:
    """The folder of the indexes, not there yet."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    return base / "stoker" / "index"


def index_of(cache: Path) -> Path:
    (file,) = cache.glob("*.index")
    return file


def make_set(root: Path) -> None:
    """A dataset with a link of every kind. Beside it: other, other2, a file, a folder of links."""
    touch(root / "set", "a/1.jpg", "a/2.jpg", "a/notes.txt", "a/sub/3.jpg", "a/sub/deep/4.jpg", "b/1.png", "b/9.png")
    touch(root / "set", "README", "d/only.jpg")
    touch(root, "other/x.jpg", "other/sub/y.jpg", "other2/z.jpg", "file", "new/1.jpg", "new/n.png")
    (root / "links").mkdir()
    for name, target in {
        "links/first": "../other",
        "set/c": "../other",
        "set/e": "../links/first",
        "set/a/to-file.jpg": "../../file",
        "set/a/to-file": "../../file",
        "set/a/to-nothing.jpg": "../../nothing",
        "set/b/to-nothing": "../../nothing-b",
        "set/b/to-folder": "../../other2",
        "set/to-nothing": "../nothing-c",
        "set/to-file": "../file",
    }.items():
        (root / name).symlink_to(target)


def replace(old: Path, by: Path) -> None:
    shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    by.rename(old)


def point(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


def folder_instead(path: Path) -> None:
    path.unlink(missing_ok=True)
    touch(path, "inside.jpg")


def add_and_restore_times(folder: Path) -> None:
    about = folder.stat()
    touch(folder, "0.jpg")
    os.utime(folder, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert folder.stat().st_mtime_ns == about.st_mtime_ns


def move_and_put_another(root: Path) -> None:
    (root / "set").rename(root / "old")
    touch(root / "set", "a/1.jpg", "b/7.jpg")


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda r: None,
    "a file added": lambda r: touch(r / "set", "a/3.jpg"),
    "a file added in a subfolder": lambda r: touch(r / "set", "a/sub/2.jpg"),
    "a file added deep down": lambda r: touch(r / "set", "a/sub/deep/2.jpg"),
    "a file removed": lambda r: (r / "set/a/1.jpg").unlink(),
    "the last file of a class removed": lambda r: (r / "set/d/only.jpg").unlink(),
    "a file renamed": lambda r: (r / "set/a/1.jpg").rename(r / "set/a/0.jpg"),
    "a file moved to another class": lambda r: (r / "set/a/1.jpg").rename(r / "set/b/1.jpg"),
    "two files exchanged between classes": lambda r: [
        (r / "set/a/1.jpg").rename(r / "t"),
        (r / "set/b/1.png").rename(r / "set/a/1.png"),
        (r / "t").rename(r / "set/b/1.jpg"),
    ],
    "a file becomes an image by its name": lambda r: (r / "set/a/notes.txt").rename(r / "set/a/notes.jpg"),
    "a file is no image any more": lambda r: (r / "set/a/1.jpg").rename(r / "set/a/1.txt"),
    "a file becomes a folder": lambda r: folder_instead(r / "set/a/1.jpg"),
    "a root's file becomes a class": lambda r: folder_instead(r / "set/README"),
    "a class added": lambda r: touch(r / "set", "aa/1.jpg"),
    "an empty class added": lambda r: (r / "set/aa").mkdir(),
    "a class removed": lambda r: shutil.rmtree(r / "set/b"),
    "a class renamed": lambda r: (r / "set/b").rename(r / "set/0"),
    "all classes removed": lambda r: [shutil.rmtree(p) if not p.is_symlink() else p.unlink() for p in dirs(r / "set")],
    "a subfolder added": lambda r: touch(r / "set", "b/sub/1.jpg"),
    "a subfolder renamed": lambda r: (r / "set/a/sub").rename(r / "set/a/SUB"),
    "a subfolder moved": lambda r: (r / "set/a/sub/deep").rename(r / "set/b/deep"),
    "a class put in another's place": lambda r: replace(r / "set/b", r / "new"),
    "a subfolder put in another's place": lambda r: replace(r / "set/a/sub", r / "new"),
    "a link put in a class's place": lambda r: [(r / "set/b").rename(r / "b"), (r / "set/b").symlink_to("../new")],
    "a class's link pointed elsewhere": lambda r: point(r / "set/c", "../other2"),
    "a link on a link's way pointed elsewhere": lambda r: point(r / "links/first", "../other2"),
    "a subfolder's link pointed elsewhere": lambda r: point(r / "set/b/to-folder", "../../other"),
    "a class's link leads nowhere": lambda r: shutil.rmtree(r / "other"),
    "a subfolder's link leads nowhere": lambda r: shutil.rmtree(r / "other2"),
    "a subfolder's link leads back up": lambda r: point(r / "set/b/to-folder", ".."),
    "a file added behind a class's link": lambda r: touch(r, "other/a.jpg"),
    "a file added below a class's link": lambda r: touch(r, "other/sub/a.jpg"),
    "a folder put where links led": lambda r: replace(r / "other", r / "new"),
    "a file where links led becomes a folder": lambda r: folder_instead(r / "file"),
    "a folder where an image's link led nowhere": lambda r: touch(r, "nothing/1.jpg"),
    "a folder where a link led nowhere": lambda r: touch(r, "nothing-b/1.jpg"),
    "a folder where a root's link led nowhere": lambda r: touch(r, "nothing-c/1.jpg"),
    "a file where a root's link led nowhere": lambda r: touch(r, "nothing-c"),
    "a root's link runs in circles": lambda r: (r / "nothing-c").symlink_to("nothing-c"),
    "a file where an image's link led is gone": lambda r: (r / "file").unlink(),
    "a folder's time of change set back": lambda r: add_and_restore_times(r / "set/a"),
    "a deep folder's time of change set back": lambda r: add_and_restore_times(r / "set/a/sub/deep"),
    "the dataset moved away, another in its place": move_and_put_another,
    "the dataset gone": lambda r: shutil.rmtree(r / "set"),
    "a hidden file added": lambda r: touch(r / "set", "b/.0.png"),
    "a name that is no UTF-8 added": lambda r: open(os.fsencode(r / "set/b") + b"/\xff.png", "wb").close(),
}


def dirs(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


@pytest.fixture(scope="module")
def calm_sets(tmp_path_factory) -> dict[str, Path]:
    """A set for each change, and more, old enough to be indexed."""
    top = tmp_path_factory.mktemp("sets")
    sets = {change: top / str(i) for i, change in enumerate([*CHANGES, "spare", "damaged", "hostile", "cache"])}
    for path in sets.values():
        make_set(path)
    time.sleep(MARGIN)
    return sets


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change(change: str, calm_sets, cache: Path, comparisons) -> None:
    root = calm_sets[change] / "set"
    assert_torchvisions(root, comparisons, "keep")
    before = index_of(cache).stat()
    assert_torchvisions(root, comparisons, "keep")
    assert index_of(cache).stat().st_ino == before.st_ino  # it was believed, not written again
    CHANGES[change](calm_sets[change])
    if root.exists():
        assert_torchvisions(root, comparisons)
        assert_torchvisions(root, comparisons, "keep")
        assert_torchvisions(root, comparisons)
    else:
        assert "No such file" in str(listing(root))


def test_changes_right_after_the_first_open(tmp_path: Path, cache: Path, comparisons) -> None:
    """Within one tick of the file system's clock a change does not show: such an index must not be kept."""
    for i in range(50):
        make_set(tmp_path / str(i))
        root = tmp_path / str(i) / "set"
        listing(root, "keep")
        touch(root, "a/0.jpg")
        assert_torchvisions(root, comparisons, "keep")
        touch(root, "a/sub/0.jpg")
        (root / "a/0.jpg").unlink()
        assert_torchvisions(root, comparisons, "keep")
    assert not list(cache.glob("*"))


def test_many_changes_with_rests(tmp_path: Path, cache: Path, comparisons) -> None:
    """Random changes in dozens of sets, each opened between any two."""
    draw = random.Random(3)
    roots = [tmp_path / str(i) / "set" for i in range(40)]
    for root in roots:
        make_set(root.parent)
    for _ in range(2):
        time.sleep(MARGIN)
        for root in roots:
            assert_torchvisions(root, comparisons, "keep")
        assert len(list(cache.glob("*.index"))) == len(roots)
        for root in roots:
            folders = [Path(top) for top, _, _ in os.walk(root, followlinks=True) if Path(top) != root]
            folder = draw.choice(folders)
            name = f"{draw.randrange(9)}.{draw.choice(['jpg', 'png', 'txt'])}"
            file = folder / name
            if not file.exists():
                touch(folder, name)
            else:
                file.rename(draw.choice(folders) / f"moved-{draw.randrange(99)}.jpg")
            assert_torchvisions(root, comparisons, "keep")


# ------------------------------------------------------------------------------------------------ the file --------


def checksum(data: bytes, seed: int) -> int:
    odd = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
    lanes = [seed ^ odd[3 - i] for i in range(4)]
    for at in range(0, len(data), 32):
        words = struct.unpack("<4Q", data[at : at + 32].ljust(32, b"\0"))
        for i in range(4):
            mixed = (lanes[i] ^ words[i]) * odd[i] & MASK
            lanes[i] = (mixed << 29 | mixed >> 35) & MASK
    result = seed ^ len(data)
    for i in range(4):
        result = (result ^ lanes[i]) * odd[i] & MASK
        result ^= result >> 32
    return result


def sealed(index: bytes) -> bytes:
    """The bytes with the checksum that they should have, where they have sections at all."""
    fields = list(HEADER.unpack_from(index))
    _, _, _, _, _, path, folders, files, links, classes, paths, names = fields
    fields[3] = 0
    total = checksum(HEADER.pack(*fields), 0)
    at = HEADER.size
    for size in (path, folders * 24, folders * 32, files * 8, links * 8, classes * 4, paths, names):
        if size > len(index):
            break
        total = checksum(index[at : at + size], total)
        at += size
    fields[3] = total
    return HEADER.pack(*fields) + index[HEADER.size :]


def test_an_index_is_what_it_is_thought_to_be(calm_sets, cache: Path) -> None:
    root = calm_sets["spare"] / "set"
    listing(root, "keep")
    index = index_of(cache).read_bytes()
    assert sealed(index) == index
    # A forged name that shows: so the index is what the listing comes from.
    index_of(cache).write_bytes(sealed(index.replace(b"2.jpg\0", b"5.jpg\0")))
    assert f"{root}/a/5.jpg" in str(listing(root))
    assert f"{root}/a/5.jpg" not in str(listing(root, "off"))
    assert f"{root}/a/5.jpg" not in str(listing(root, "rebuild"))
    assert index_of(cache).read_bytes() == index


def test_every_cut_and_every_flipped_byte(calm_sets, cache: Path, comparisons) -> None:
    root = calm_sets["damaged"] / "set"
    expected = listing(root, "keep")
    assert expected == torchvisions(root)
    file = index_of(cache)
    index = file.read_bytes()
    for size in range(len(index)):
        file.write_bytes(index[:size])
        assert listing(root) == expected, size
    for at in range(len(index)):
        for value in (1, 0x80):
            file.write_bytes(index[:at] + bytes([index[at] ^ value]) + index[at + 1 :])
            assert listing(root) == expected, at
    for more in (b"\0", bytes(8), index):
        file.write_bytes(index + more)
        assert listing(root) == expected
    comparisons(len(index) * 3 + 3)
    assert listing(root, "keep") == expected
    assert file.read_bytes() == index


def test_hostile_indexes_are_refused(calm_sets, cache: Path) -> None:
    """Whole by their checksum, but with numbers and names that lead out of the file or of the dataset."""
    root = calm_sets["hostile"] / "set"
    expected = listing(root, "keep")
    file = index_of(cache)
    index = file.read_bytes()
    sizes = HEADER.unpack_from(index)
    folders_at = HEADER.size + sizes[5]
    files_at = folders_at + sizes[6] * (24 + 32)
    links_at = files_at + sizes[7] * 8
    classes_at = links_at + sizes[8] * 8

    def refused(at: int, format: str, *values: int) -> None:
        for value in values:
            changed = bytearray(index)
            struct.pack_into(format, changed, at, value)
            file.write_bytes(sealed(bytes(changed)))
            assert listing(root) == expected, (at, value)

    far = (2**31, 2**32 - 1)
    for field in range(4, 12):
        refused(24 + 8 * (field - 4), "<Q", 0, 1, 2**31, 2**32, 2**61, 2**63, 2**64 - 1, sizes[field] + 1)
    for i in range(sizes[6]):
        refused(folders_at + 24 * i, "<Q", sizes[10], 2**32, 2**64 - 1)  # its path
        refused(folders_at + 24 * i + 8, "<Q", sizes[11] + 1, 2**63, 2**64 - 1)  # its names
        refused(folders_at + 24 * i + 16, "<i", -2, sizes[9], 2**31 - 1)  # its label
    for i in range(sizes[7]):
        refused(files_at + 8 * i, "<I", 0, sizes[6], *far)  # its folder
        refused(files_at + 8 * i + 4, "<I", sizes[11], *far)  # its name
    for i in range(sizes[8]):
        refused(links_at + 8 * i, "<I", sizes[6], *far)
        refused(links_at + 8 * i + 4, "<I", sizes[11], *far)
    for i in range(sizes[9]):
        refused(classes_at + 4 * i, "<I", 0, sizes[6], *far)
    for name, forged in {
        b"1.jpg\0": b"/.jpg\0",
        b"\0a/sub\0": b"\0/sub/\0",
        b"a/sub/deep\0": b"a/../../xy\0",
        b"\0b\0": b"\0.\0",
        b"\0c\0": b"\0/\0",
        b"\0a/sub/deep\0": b"\0a/sub/./ep\0",
        b"9.png\0": b"9.pngx",
    }.items():
        assert name in index and len(name) == len(forged)
        file.write_bytes(sealed(index.replace(name, forged)))
        got = listing(root)
        assert got == expected or name == b"9.png\0", name
    file.write_bytes(sealed(index[:-1] + b"x"))
    assert listing(root) == expected


def test_random_hostile_indexes_do_not_crash(calm_sets, cache: Path) -> None:
    root = calm_sets["spare"] / "set"
    listing(root, "rebuild")
    file = index_of(cache)
    index = file.read_bytes()
    draw = random.Random(7)
    for _ in range(3000):
        changed = bytearray(index)
        for _ in range(draw.choice((1, 2, 5))):
            changed[draw.randrange(16, len(index))] = draw.choice((0, 1, 0x2F, 0x7F, 0xFF, draw.randrange(256)))
        file.write_bytes(sealed(bytes(changed)))
        listing(root)


def test_an_index_of_another_is_not_believed(calm_sets, cache: Path) -> None:
    root, other = calm_sets["spare"] / "set", calm_sets["cache"] / "set"
    expected = listing(other, "off")
    listing(root, "keep")
    file = index_of(cache)
    index = file.read_bytes()
    listing(other, "keep")
    (others,) = set(cache.glob("*.index")) - {file}
    others.write_bytes(index)
    assert listing(other) == expected
    others.unlink()
    others.symlink_to(file)
    assert listing(other) == expected
    if os.geteuid() == 0:
        file.write_bytes(sealed(index.replace(b"2.jpg\0", b"5.jpg\0")))
        os.chown(file, 65534, 65534)
        assert "5.jpg" not in str(listing(root))


def test_what_lies_in_the_cache_folder_and_is_odd(calm_sets, cache: Path, comparisons) -> None:
    """A pipe, a folder, a link to nothing under the index's name: no wait, no error."""
    root = calm_sets["cache"] / "set"
    listing(root, "keep")
    file = index_of(cache)
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("nothing", path)):
        file.unlink()
        make(file)
        assert_torchvisions(root, comparisons, "keep")
        if file.is_dir():
            file.rmdir()
            file.touch()


# ------------------------------------------------------------------------------------------------- the folder --------


def test_indexes_of_what_is_gone_are_removed_and_nothing_else(tmp_path: Path, calm_sets, cache: Path) -> None:
    gone = [tmp_path / f"gone-{i}" for i in range(3)]
    for path in gone:
        make_set(path)
    time.sleep(MARGIN)
    for path in gone:
        listing(path / "set", "keep")
    assert len(list(cache.iterdir())) == 3
    foreign = {
        "0123456789abcdef.index": b"not ours, but for the name",
        "0123456789abcdef.indexes": b"",
        "mine.index": next(cache.iterdir()).read_bytes(),
        "0123456789abcde.index": b"",
        "README": b"",
    }
    for name, content in foreign.items():
        (cache / name).write_bytes(content)
    killed, writing = cache / "0123456789abcdef.index.00c0ffee", cache / "0123456789abcdef.index.00c0ffef"
    killed.write_bytes(b"STK")
    writing.write_bytes(b"STK")
    os.utime(killed, (time.time() - 7200,) * 2)
    shutil.rmtree(gone[0])
    shutil.rmtree(gone[1])
    listing(calm_sets["spare"] / "set", "rebuild")
    left = {path.name for path in cache.iterdir()}
    assert left >= {*foreign, writing.name} and killed.name not in left
    assert len(left) == len(foreign) + 1 + 2


def run_python(code: str, *arguments: object, **environment: str | None) -> subprocess.CompletedProcess[str]:
    settings = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-B", "-c", code, *map(str, arguments)], env=settings, capture_output=True, text=True
    )


OPEN = "import sys, stoker; print(len(stoker.Dataset(sys.argv[1], index='keep')))"


def test_no_place_for_an_index(calm_sets, tmp_path: Path) -> None:
    root = calm_sets["spare"] / "set"
    count = f"{len(torchvisions(root)[1])}\n"  # type: ignore[index]
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0o500)
    for place in (tmp_path / "file", tmp_path / "closed", "/proc/nothing", "/dev/null", tmp_path / ("n" * 300), "no"):
        result = run_python(OPEN, root, XDG_CACHE_HOME=str(place), HOME="/proc/nothing")
        assert (result.returncode, result.stdout, result.stderr) == (0, count, ""), place
    assert run_python(OPEN, root, XDG_CACHE_HOME=None, HOME=None).stdout == count
    assert run_python(OPEN, root, XDG_CACHE_HOME="", HOME="").stdout == count
    assert run_python(OPEN, root, XDG_CACHE_HOME="/" + "n" * 5000).stdout == count
    home = tmp_path / "home"
    home.mkdir()
    assert run_python(OPEN, root, XDG_CACHE_HOME=None, HOME=str(home)).stdout == count
    assert len(list((home / ".cache/stoker/index").glob("*.index"))) == 1
    assert not Path("no").exists()


def test_a_file_that_may_not_grow_is_no_signal(calm_sets, cache: Path) -> None:
    code = (
        "import resource, signal, sys, stoker\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "stoker.Dataset(sys.argv[1], index='keep')\n"
    )
    assert run_python(code, calm_sets["spare"] / "set").returncode == 0
    assert list(cache.parent.rglob("*.index*")) == []


@pytest.fixture(scope="module")
def large_set(tmp_path_factory) -> Iterator[Path]:
    """20 classes of 2,000 files, old enough."""
    top = tmp_path_factory.mktemp("large")
    for i in range(20):
        folder = top / f"class-{i:02}"
        touch(folder, "0.jpg")
        for k in range(1, 2000):
            os.link(folder / "0.jpg", folder / f"{k}.jpg")
    time.sleep(MARGIN)
    yield top
    shutil.rmtree(top)


def test_several_processes_at_once(large_set: Path, cache: Path) -> None:
    code = (
        "import sys, time, stoker\n"
        "over = time.monotonic() + 1.5\n"
        "while time.monotonic() < over:\n"
        "    d = stoker.Dataset(sys.argv[1], index=sys.argv[2])\n"
        "    assert len(d) == 40_000 and d.where(39_999).endswith('class-19/999.jpg'), len(d)\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-B", "-c", code, str(large_set), index])
        for index in ("rebuild", "rebuild", "keep", "auto")
    ]
    assert [run.wait() for run in runs] == [0, 0, 0, 0]
    assert len(list(cache.iterdir())) == 1


def test_killed_while_writing(large_set: Path, cache: Path) -> None:
    code = "import sys, stoker\nprint('.', flush=True)\nwhile True: stoker.Dataset(sys.argv[1], index='rebuild')\n"
    draw = random.Random(5)
    expected = listing(large_set, "off")
    for _ in range(8):
        run = subprocess.Popen([sys.executable, "-B", "-c", code, str(large_set)], stdout=subprocess.PIPE)
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(0.02 + 0.1 * draw.random())
        run.send_signal(signal.SIGKILL)
        run.wait()
        run.stdout.close()
        assert listing(large_set) == expected
    for file in cache.iterdir():
        os.utime(file, (time.time() - 7200,) * 2)
    assert listing(large_set, "rebuild") == expected
    assert len(list(cache.iterdir())) == 1


def test_order_of_many_names(tmp_path: Path, comparisons) -> None:
    """More than are sorted by comparing, alike at their beginnings and not."""
    draw = random.Random(11)
    for name, make in {
        "numbers": lambda i: f"n01440764_{draw.randrange(10**6)}",
        "long": lambda i: "p" * draw.choice((0, 7, 8, 9, 40)) + f"{draw.randrange(300):08}{draw.randrange(99)}",
        "short": lambda i: "".join(draw.choices("ab-.~ ", k=draw.randrange(1, 7))),
        "beyond ASCII": lambda i: "".join(draw.choices("aé\ue000😀\udcff", k=draw.randrange(1, 7))),
    }.items():
        touch(tmp_path, *(f"{name}/{make(i)}.jpg" for i in range(400)))
    assert_torchvisions(tmp_path, comparisons, "off")


# ----------------------------------------------------------------------------------------------- the settings --------


def test_which_sets_are_kept(tmp_path: Path, large_set: Path, cache: Path, calm_sets) -> None:
    small = calm_sets["spare"] / "set"
    listing(small)
    assert not cache.exists()
    listing(large_set, "off")
    assert not cache.exists()
    listing(large_set)
    assert len(list(cache.iterdir())) == 1
    os.environ["STOKER_INDEX"] = "off"
    try:
        index_of(cache).unlink()
        listing(large_set)
        assert not list(cache.iterdir())
        listing(small, "keep")  # what the program says comes first
        assert len(list(cache.iterdir())) == 1
        os.environ["STOKER_INDEX"] = "sometimes"
        assert "STOKER_INDEX is 'sometimes'" in str(listing(small))
    finally:
        del os.environ["STOKER_INDEX"]
    with pytest.raises(stoker.SettingError, match="unknown index 'on': auto, off, keep, rebuild"):
        stoker.Dataset(small, index="on")  # type: ignore[arg-type]


def test_the_command_takes_no_index(large_set: Path, cache: Path, stoker_command: Path) -> None:
    command = [stoker_command, "ls", large_set, "--limit", "1"]
    subprocess.run([*command, "--no-index"], check=True, capture_output=True)
    assert not cache.exists()
    subprocess.run(command, check=True, capture_output=True)
    assert len(list(cache.iterdir())) == 1


def test_another_way_to_the_same_folder(calm_sets, cache: Path, monkeypatch, comparisons) -> None:
    """Links and relative paths share an index; the samples' paths are the caller's."""
    root = calm_sets["spare"] / "set"
    listing(root, "keep")
    link = cache.parent / "link"
    link.symlink_to(root)
    assert_torchvisions(link, comparisons, "keep")
    monkeypatch.chdir(root)
    assert_torchvisions(Path("."), comparisons, "keep")
    assert len(list(cache.glob("*.index"))) == 1
