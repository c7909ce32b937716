# SPDX-License-Identifier: Apache-2.0
"""Packs: the pixels of the original files as Pillow has them; what broken files do; killing, damage, hostile files."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pack_reader
import pytest
import stoker
from checksums import xxh3_64, xxh3_128
from conftest import DATA
from decoding import pillow
from library import Dataset as CDataset
from library import LibraryError
from library import Loader as CLoader
from PIL import Image


@pytest.fixture(scope="module")
def photo_pack(photos: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pack") / "photos.stk"
    report = stoker.pack(DATA / "photos", path)
    assert (report.samples, report.dct, report.odd) == (len(photos), len(photos), [])
    assert report.bytes_out <= 1.15 * report.bytes_in
    return path


def test_photos_whole(photo_pack: Path, photos: list[Path], comparisons: Callable[[int], None]) -> None:
    packed = stoker.Dataset(photo_pack)
    folder = stoker.Dataset(DATA / "photos")
    assert packed.format == "pack"
    assert packed.classes == folder.classes
    assert np.array_equal(packed.labels, folder.labels)
    for i, path in enumerate(photos):
        assert packed.where(i) == f"{photo_pack}: {path.parent.name}/{path.name}"
        assert np.array_equal(packed.decode(i), pillow(path.read_bytes()))
        if i % 10 == 0:
            assert np.array_equal(pillow(packed.bytes(i)), pillow(path.read_bytes()))
        comparisons()


@pytest.mark.parametrize("size", [17, 64, 97])
def test_photos_in_crops(photo_pack: Path, photos: list[Path], size: int, comparisons: Callable[[int], None]) -> None:
    """Random crops, which the reader decodes alone; 10,500 with all sizes."""
    whole = [np.asarray(Image.open(path).convert("RGB")) for path in photos]
    dataset = CDataset(photo_pack)
    with CLoader(dataset, f"random_crop({size})", batch=50, epochs=7, keep_draws=1, seed=size) as loader:
        for _ in range(7):
            for batch in loader.epoch():
                for image, number, draws in zip(batch.images, batch.samples, batch.draws, strict=True):
                    top, left, height, width = draws[0][2]
                    expected = whole[number][top : top + height, left : left + width]
                    assert np.array_equal(image, expected), (photos[number], draws)
                    comparisons()
    dataset.close()


def test_photos_as_jpeg(photos: list[Path], tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    """Standard JPEG files: Pillow reads the payloads, too."""
    report = stoker.pack(DATA / "photos", tmp_path / "j.stk", "jpeg")
    assert report.jpeg == len(photos) and report.bytes_out <= 1.01 * report.bytes_in
    packed = stoker.Dataset(tmp_path / "j.stk")
    for i, path in enumerate(photos):
        expected = pillow(path.read_bytes())
        assert np.array_equal(packed.decode(i), expected)
        assert np.array_equal(pillow(packed.bytes(i)), expected)
        comparisons(2)


def test_training_tensors_are_the_folders(photo_pack: Path, comparisons: Callable[[int], None]) -> None:
    """The same seed gives the same batches, whatever the threads."""
    ops = "random_resized_crop(64) random_horizontal_flip normalize(imagenet)"
    loaders = [
        stoker.Loader(path, ops, batch=50, seed=3, threads=threads, epochs=1)
        for path, threads in ((DATA / "photos", 2), (photo_pack, 1), (photo_pack, 3))
    ]
    for batches in zip(*loaders, strict=True):
        first = np.from_dlpack(batches[0][0])
        for images, labels in batches[1:]:
            assert np.array_equal(np.from_dlpack(images), first)
            assert np.array_equal(np.from_dlpack(labels), np.from_dlpack(batches[0][1]))
            comparisons(len(first))


@pytest.mark.parametrize("mode", ["dct", "jpeg", "raw", "keep"])
@pytest.mark.parametrize("upright", [False, True])
def test_odd_files(tmp_path: Path, mode: str, upright: bool, data_dir: Path) -> None:
    """Each file does from the pack what it does from its folder: pixels, verdict and reason."""
    folder = stoker.Dataset(data_dir / "odd", exif_orientation=upright)
    report = stoker.pack(data_dir / "odd", tmp_path / "odd.stk", mode)  # type: ignore[arg-type]
    packed = stoker.Dataset(tmp_path / "odd.stk", exif_orientation=upright)
    assert len(packed) == len(folder) == report.samples
    assert (report.dct > 150) == (mode == "dct")
    assert (report.jpeg > 150) == (mode == "jpeg")
    odd = 0
    for i in range(len(folder)):
        there, here = folder.check(i), packed.check(i)
        odd += there.verdict == "odd"
        if here.format == "raw":
            assert (here.width, here.height) == (there.width, there.height)
        else:
            reason = there.reason.removeprefix(f"{folder.where(i)}: ")
            assert here.reason.removeprefix(f"{packed.where(i)}: ") == reason
            assert here._replace(bytes=0, reason="") == there._replace(bytes=0, reason=""), folder.where(i)
        if there.verdict != "odd":
            assert np.array_equal(packed.decode(i), folder.decode(i)), folder.where(i)
    if not upright:
        assert len(report.odd) == odd


def test_cifar(tmp_path: Path, data_dir: Path, comparisons: Callable[[int], None]) -> None:
    source = data_dir / "cifar-10-real-bin"
    report = stoker.pack(source, tmp_path / "c.stk")
    assert report.raw == report.samples == 5000
    for split, name in (("default", "train"), ("train", "train"), ("test", "test"), ("all", "all")):
        a, b = stoker.Dataset(source, name), stoker.Dataset(tmp_path / "c.stk", split)  # type: ignore[arg-type]
        assert len(a) == len(b) and a.classes == b.classes and a.sample_size == b.sample_size
        assert np.array_equal(a.labels, b.labels)
        for (images, labels), (other, other_labels) in zip(
            stoker.Loader(a, "", batch=100, shuffle=False, epochs=1),
            stoker.Loader(b, "", batch=100, shuffle=False, epochs=1),
            strict=True,
        ):
            assert np.array_equal(np.from_dlpack(images), np.from_dlpack(other))
            assert np.array_equal(np.from_dlpack(labels), np.from_dlpack(other_labels))
            comparisons(100)
    stoker.unpack(tmp_path / "c.stk", tmp_path / "out")
    files = sorted((tmp_path / "out").glob("test/*/*.png"), key=lambda path: path.name)
    test = stoker.Dataset(source, "test")
    assert len(files) == len(test)
    for i in range(0, len(test), 50):
        assert files[i].parent.name == test.classes[test.label(i)]
        assert np.array_equal(np.asarray(Image.open(files[i])), test.decode(i))


# ------------------------------------------------------------------------------------------- a small dataset --------


def draw(path: Path, seed: int, **options: object) -> None:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((96, 72), Image.Resampling.BICUBIC).save(path, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """40 files: JPEG of several kinds, PNG, a broken one, an empty one."""
    for label in ("cat", "dog"):
        (tmp_path / "data" / label).mkdir(parents=True)
        for i in range(18):
            draw(
                tmp_path / "data" / label / f"{i:02}.jpg",
                i,
                quality=50 + 2 * i,
                subsampling=i % 3,
                progressive=i % 5 == 0,
            )
        draw(tmp_path / "data" / label / "a.png", 1)
    (tmp_path / "data" / "cat" / "broken.jpg").write_bytes((tmp_path / "data" / "cat" / "00.jpg").read_bytes()[:300])
    (tmp_path / "data" / "dog" / "empty.jpg").write_bytes(b"")
    return tmp_path / "data"


def assert_same(pack: Path, folder: Path) -> None:
    here, there = stoker.Dataset(pack), stoker.Dataset(folder)
    assert len(here) == len(there)
    for i in range(len(there)):
        check = there.check(i)
        assert here.check(i).verdict == check.verdict
        if check.verdict != "odd":
            assert np.array_equal(here.decode(i), pillow(Path(there.where(i)).read_bytes()))
    assert stoker.verify(pack) == []


def test_broken_files_are_kept_and_listed(tmp_path: Path, folder: Path) -> None:
    report = stoker.pack(folder, tmp_path / "p.stk")
    assert (report.samples, report.dct, report.original) == (40, 36, 4)
    assert [Path(where).name for where, _ in report.odd] == ["broken.jpg", "empty.jpg"]
    assert_same(tmp_path / "p.stk", folder)
    packed = stoker.Dataset(tmp_path / "p.stk")
    with pytest.raises(stoker.DataError, match=r"p\.stk: dog/empty\.jpg.*empty"):
        packed.decode(39)
    loader = stoker.Loader(packed, "center_crop(32)", batch=8, epochs=1, on_error="skip")
    assert sum(len(labels) for _, labels in loader) == 38


def test_unpack(tmp_path: Path, folder: Path) -> None:
    stoker.pack(folder, tmp_path / "keep.stk", "keep")
    report = stoker.unpack(tmp_path / "keep.stk", tmp_path / "kept")
    assert report.identical == report.samples == 40
    for path in folder.glob("*/*"):
        assert (tmp_path / "kept" / path.relative_to(folder)).read_bytes() == path.read_bytes()
    stoker.pack(folder, tmp_path / "dct.stk")
    stoker.unpack(tmp_path / "dct.stk", tmp_path / "out")
    for path in folder.glob("*/*"):
        got, expected = pillow((tmp_path / "out" / path.relative_to(folder)).read_bytes()), pillow(path.read_bytes())
        assert isinstance(expected, Exception) == isinstance(got, Exception)
        if not isinstance(expected, Exception):
            assert np.array_equal(got, expected)
    with pytest.raises(stoker.SettingError, match="not empty"):
        stoker.unpack(tmp_path / "dct.stk", tmp_path / "out")


def test_turned_photos_stay_turned(tmp_path: Path) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = turn
        draw(tmp_path / "data" / "a" / f"{turn}.jpg", turn, exif=exif)
    assert stoker.pack(tmp_path / "data", tmp_path / "p.stk").dct == 8
    stoker.unpack(tmp_path / "p.stk", tmp_path / "out")
    for upright in (False, True):
        packed = stoker.Dataset(tmp_path / "p.stk", exif_orientation=upright)
        unpacked = stoker.Dataset(tmp_path / "out", exif_orientation=upright)
        for i in range(8):
            expected = pillow((tmp_path / "data" / "a" / f"{i + 1}.jpg").read_bytes(), upright)
            assert np.array_equal(packed.decode(i), expected)
            assert np.array_equal(unpacked.decode(i), expected)


def test_a_file_is_not_replaced_unasked(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "p.stk").write_bytes(b"mine")
    with pytest.raises(stoker.SettingError, match="there already"):
        stoker.pack(folder, tmp_path / "p.stk")
    assert (tmp_path / "p.stk").read_bytes() == b"mine"
    stoker.pack(folder, tmp_path / "p.stk", overwrite=True)
    assert_same(tmp_path / "p.stk", folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "p.stk"]


def test_the_same_bytes_whatever_the_threads(tmp_path: Path, folder: Path, stoker_command: Path) -> None:
    stoker.pack(folder, tmp_path / "a.stk")
    subprocess.run(["taskset", "-c", "0", stoker_command, "pack", folder, tmp_path / "b.stk"], check=True)
    assert (tmp_path / "a.stk").read_bytes() == (tmp_path / "b.stk").read_bytes()


# ------------------------------------------------------------------------------------------------- accidents --------


def test_kill_at_random_moments(tmp_path: Path, photos: list[Path], stoker_command: Path) -> None:
    """50 times; no file that looks finished, and the last run completes it, to the bytes of an unbroken run."""
    source, out = tmp_path / "data", tmp_path / "p.stk"
    for path in photos[:100]:
        (source / path.parent.name).mkdir(parents=True)
        os.symlink(path, source / path.parent.name / path.name)
    begin = time.monotonic()
    stoker.pack(source, tmp_path / "whole.stk")
    seconds = time.monotonic() - begin
    dice = random.Random(1)
    resumed = []
    for _ in range(50):
        process = subprocess.Popen([stoker_command, "pack", source, out, "--json"], stdout=subprocess.PIPE)
        try:
            process.wait(dice.uniform(0, 0.6 * seconds))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        text = process.communicate()[0]
        if process.returncode == 0:
            assert out.read_bytes() == (tmp_path / "whole.stk").read_bytes()
            resumed.append(json.loads(text)["resumed"])
            out.unlink()
            continue
        if out.exists():  # killed between getting its name and the end
            assert out.read_bytes() == (tmp_path / "whole.stk").read_bytes()
            out.unlink()
            continue
        partial = tmp_path / "p.stk.partial"
        if partial.exists():
            with pytest.raises(stoker.StokerError, match=r"unfinished|not a dataset"):
                stoker.Dataset(partial)
    subprocess.run([stoker_command, "pack", source, out], check=True, stdout=subprocess.DEVNULL)
    assert out.read_bytes() == (tmp_path / "whole.stk").read_bytes()
    assert any(resumed) or not resumed


def test_partial_file_cut_or_damaged_anywhere(tmp_path: Path, folder: Path) -> None:
    stoker.pack(folder, tmp_path / "whole.stk")
    whole = (tmp_path / "whole.stk").read_bytes()
    # A partial file as an interrupted run leaves it: an unfinished header, then records.
    (folder / "cat" / "00.jpg").rename(tmp_path / "away.jpg")
    with pytest.raises(stoker.StokerError):
        stoker.Dataset(tmp_path / "nothing.stk")
    (tmp_path / "away.jpg").rename(folder / "cat" / "00.jpg")
    partial = tmp_path / "p.stk.partial"
    dice = random.Random(2)
    with_header = unfinished(tmp_path, folder, whole)
    for _ in range(40):
        data = bytearray(with_header[: dice.randrange(len(with_header))])
        if data and dice.random() < 0.5:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        partial.write_bytes(data)
        stoker.pack(folder, tmp_path / "p.stk")
        assert (tmp_path / "p.stk").read_bytes() == whole
        (tmp_path / "p.stk").unlink()


def unfinished(tmp_path: Path, folder: Path, whole: bytes) -> bytes:
    """The whole pack's records behind the header of a run that a vanished file ended."""
    last = folder / "dog" / "17.jpg"
    dataset = stoker.Dataset(folder)
    last.rename(tmp_path / "last.jpg")
    with pytest.raises(stoker.ReadError, match=r"17\.jpg"):
        stoker.pack(dataset, tmp_path / "q.stk")
    (tmp_path / "last.jpg").rename(last)
    left = (tmp_path / "q.stk.partial").read_bytes()
    (tmp_path / "q.stk.partial").unlink()
    # Packed by a dataset without its path: what differs is the job's number alone, which a run by path writes itself.
    assert left[:8] == b"STOKRPT\n"
    header = bytearray(left[:4096])
    header[128:136] = whole[128:136]
    return bytes(checked(header)) + whole[4096:]


def checked(header: bytearray) -> bytearray:
    """With the checksum that its other bytes have."""
    header[4088:4096] = xxh3_64(bytes(header[:4088])).to_bytes(8, "little")
    return header


def test_changed_and_vanished_files(tmp_path: Path, folder: Path, stoker_command: Path) -> None:
    stoker.pack(folder, tmp_path / "whole.stk")
    whole = (tmp_path / "whole.stk").read_bytes()
    (tmp_path / "p.stk.partial").write_bytes(unfinished(tmp_path, folder, whole))
    draw(folder / "cat" / "05.jpg", 99)  # since the interruption
    report = stoker.pack(folder, tmp_path / "p.stk")
    assert report.resumed == 5
    assert_same(tmp_path / "p.stk", folder)


def test_two_packers(tmp_path: Path, folder: Path, stoker_command: Path) -> None:
    import fcntl

    with open(tmp_path / "p.stk.partial", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(stoker.StokerError, match="another packer"):
            stoker.pack(folder, tmp_path / "p.stk")
    both = [
        subprocess.Popen([stoker_command, "pack", folder, tmp_path / "p.stk"], stderr=subprocess.PIPE, stdout=-3)
        for _ in range(2)
    ]
    errors = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both)[0] == 0, errors
    assert_same(tmp_path / "p.stk", folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_full_disk(tmp_path: Path, folder: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode != 0:
        pytest.skip("no right to mount")
    try:
        with pytest.raises(stoker.ReadError, match="needed, and the disk has"):
            stoker.pack(folder, disk / "p.stk")
        assert not (disk / "p.stk").exists()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_disk_fills_up_meanwhile(tmp_path: Path, folder: Path, stoker_command: Path) -> None:
    """ulimit -f stands for it: writes fail, nothing looks finished, and the next run completes it."""
    command = f"ulimit -f 40; exec '{stoker_command}' pack '{folder}' '{tmp_path}/p.stk'"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.returncode == 1 and "cannot write" in result.stderr
    assert not (tmp_path / "p.stk").exists()
    assert stoker.pack(folder, tmp_path / "p.stk").resumed > 0
    assert_same(tmp_path / "p.stk", folder)


# ---------------------------------------------------------------------------------------------------- damage --------


def read_all(path: Path) -> list[np.ndarray | str]:
    dataset = stoker.Dataset(path)
    out: list[np.ndarray | str] = []
    for i in range(len(dataset)):
        try:
            out.append(dataset.decode(i))
        except stoker.StokerError as error:
            out.append(str(error))
    return out


def test_a_flipped_bit_anywhere(tmp_path: Path, folder: Path) -> None:
    """No wrong pixels; the error names pack and sample; verify sees each."""
    for path in list(folder.glob("*/*"))[3:]:
        path.unlink()
    for label in ("cat", "dog"):
        draw(folder / label / "z.jpg", 5)
        draw(folder / label / "z.png", 6)
    pack, bad = tmp_path / "p.stk", tmp_path / "bad.stk"
    for mode in ("dct", "jpeg", "raw", "keep"):
        stoker.pack(folder, pack, mode, overwrite=True)  # type: ignore[arg-type]
        good, data = read_all(pack), pack.read_bytes()
        dice = random.Random(3)
        for at in [*range(0, 256), *(dice.randrange(len(data)) for _ in range(1500))]:
            broken = bytearray(data)
            broken[at] ^= 1 << dice.randrange(8)
            bad.write_bytes(broken)
            with pytest.raises(stoker.StokerError):
                if stoker.verify(bad):
                    raise stoker.DataError("damaged samples")
            try:
                seen = read_all(bad)
            except stoker.StokerError as error:
                assert "bad.stk" in str(error) or "not a dataset" in str(error)
                continue
            for number, (got, expected) in enumerate(zip(seen, good, strict=True)):
                if isinstance(got, str):
                    assert "bad.stk" in got and f"sample {number}" in got, got
                else:
                    assert np.array_equal(got, expected)


def test_cut_short_future_and_hostile(tmp_path: Path, folder: Path) -> None:
    stoker.pack(folder, tmp_path / "p.stk")
    data, bad = (tmp_path / "p.stk").read_bytes(), tmp_path / "bad.stk"
    for size in (8, 100, 4095, 4096, 5000, len(data) // 2, len(data) - 1):
        bad.write_bytes(data[:size])
        with pytest.raises(stoker.DataError, match=r"bad\.stk.*cut short"):
            stoker.Dataset(bad)
    header = bytearray(data[:4096])
    header[8] = 2
    bad.write_bytes(bytes(checked(header)) + data[4096:])
    with pytest.raises(stoker.UnsupportedError, match="version 2"):
        stoker.Dataset(bad)
    dice = random.Random(4)
    for _ in range(400):  # headers that are right in themselves, with fields that are not
        header = bytearray(data[:4096])
        at = dice.choice([24, 32, 40, 48, 52, 56, 60, 64, 72, 80, 116])
        header[at : at + 8] = dice.choice([2**63 - 1, 2**64 - 1, 2**32, 0, 1, len(data), len(data) - 1]).to_bytes(
            8, "little"
        )
        bad.write_bytes(bytes(checked(header)) + data[4096:])
        try:
            read_all(bad)
        except stoker.StokerError as error:
            assert "bad.stk" in str(error)
        try:
            stoker.verify(bad)
        except stoker.StokerError as error:
            assert "bad.stk" in str(error)


def test_hostile_records(tmp_path: Path, folder: Path) -> None:
    """Index records with right checksums and wrong places, sizes, encodings."""
    stoker.pack(folder, tmp_path / "p.stk")
    data, bad = (tmp_path / "p.stk").read_bytes(), tmp_path / "bad.stk"
    index = int.from_bytes(data[64:72], "little")
    dice = random.Random(5)
    for _ in range(600):
        number = dice.randrange(40)
        record = bytearray(data[index + 48 * number :][:48])
        for _ in range(dice.choice([1, 1, 2])):
            at, size = dice.choice([(0, 8), (8, 8), (16, 8), (32, 4), (36, 4), (40, 1), (41, 1)])
            value = dice.choice([0, 1, 64, 4096, 4224, len(data), 2**31, 2**32 - 1, 2**64 - 64, dice.randrange(8)])
            record[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
        record[44:48] = (xxh3_64(bytes(record[:44]), number) & 0xFFFFFFFF).to_bytes(4, "little")
        bad.write_bytes(data[: index + 48 * number] + record + data[index + 48 * number + 48 :])
        read_all(bad)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        try:
            stoker.unpack(bad, tmp_path / "out")
        except stoker.StokerError as error:
            assert "bad.stk" in str(error)


def test_paths_do_not_lead_out(tmp_path: Path, folder: Path) -> None:
    stoker.pack(folder, tmp_path / "p.stk", "keep")
    data = bytearray((tmp_path / "p.stk").read_bytes())
    at = data.index(b"cat/00.jpg")
    head = at // 64 * 64
    while data[head : head + 4] != b"SREC":
        head -= 64
    for path in (b"/tmp/00ab", b"../00.jpgx", b"cat/../../", b"cat//0.jpg", b"cat/./0.jp", b"cat/00\0jpg"):
        text = path.ljust(10, b"x")
        data[at : at + 10] = text
        data[head + 24 : head + 32] = xxh3_64(text).to_bytes(8, "little")
        data[head + 120 : head + 128] = xxh3_64(bytes(data[head : head + 120])).to_bytes(8, "little")
        (tmp_path / "bad.stk").write_bytes(data)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with pytest.raises(stoker.DataError, match="lead out"):
            stoker.unpack(tmp_path / "bad.stk", tmp_path / "out")


def test_library_refuses_wrong_arguments(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(stoker.SettingError, match="unknown mode"):
        stoker.pack(folder, tmp_path / "p.stk", "zip")  # type: ignore[arg-type]
    with pytest.raises(stoker.ReadError):
        stoker.pack(folder, tmp_path / "nowhere" / "p.stk")
    with pytest.raises(stoker.SettingError, match="regular file"):
        stoker.pack(folder, folder)
    stoker.pack(folder, tmp_path / "p.stk")
    with pytest.raises(stoker.UnsupportedError, match="pack of a pack"):
        stoker.pack(tmp_path / "p.stk", tmp_path / "q.stk")
    with pytest.raises(LibraryError):
        CDataset(tmp_path / "p.stk.partial")


# ------------------------------------------------------------------------------- a reader by the specification ------


def test_reader_written_from_the_specification(
    tmp_path: Path, folder: Path, photos: list[Path], comparisons: Callable[[int], None]
) -> None:
    """Its coefficients, as a JPEG file of its own making, have Pillow's pixels of the original."""
    for path in photos[:6]:
        shutil.copy(path, folder / "cat" / path.name)
    stoker.pack(folder, tmp_path / "p.stk")
    pack, there = pack_reader.read(tmp_path / "p.stk"), stoker.Dataset(folder)
    assert (pack.train, pack.test, pack.channels, pack.origin) == (0, 0, 3, b"imagefolder")
    assert [name.decode() for name in pack.classes] == there.classes
    assert len(pack.samples) == len(there)
    encodings = []
    for i, sample in enumerate(pack.samples):
        source = folder / os.fsdecode(sample.path)
        assert source == Path(there.where(i)) and sample.label == there.label(i)
        original = source.read_bytes()
        assert (sample.source_size, sample.source_hash) == (len(original), xxh3_128(original))
        encodings.append(sample.encoding)
        if sample.encoding == pack_reader.ORIGINAL:
            assert sample.payload == original
            continue
        image = pack_reader.read_dct(sample.payload)
        assert image.orientation == 1
        assert np.array_equal(pillow(pack_reader.to_jpeg(image)), pillow(original)), source
        comparisons()
    assert encodings.count(pack_reader.DCT) == 42


def test_reader_written_from_the_specification_reads_raw_samples(tmp_path: Path, data_dir: Path) -> None:
    stoker.pack(data_dir / "cifar-10-real-bin", tmp_path / "c.stk")
    pack = pack_reader.read(tmp_path / "c.stk")
    assert (pack.train, pack.test, pack.origin) == (4000, 1000, b"cifar10")
    source = stoker.Dataset(data_dir / "cifar-10-real-bin", "all")
    for i in range(0, 5000, 7):
        sample = pack.samples[i]
        assert (sample.encoding, sample.width, sample.height, sample.channels) == (pack_reader.PLANAR, 32, 32, 3)
        pixels = np.frombuffer(sample.payload, np.uint8).reshape(3, 32, 32).transpose(1, 2, 0)
        assert np.array_equal(pixels, source.decode(i)) and sample.label == source.label(i)
