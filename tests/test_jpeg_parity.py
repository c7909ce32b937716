# SPDX-License-Identifier: Apache-2.0
"""JPEG: Pillow's pixels, bit for bit, and an error exactly where Pillow raises.

Sound files come from Pillow's encoder, and from a small writer of random coefficients for what that does not write:
other samplings, and progressive files with any choice of scans.
"""

from __future__ import annotations

import io
import itertools
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoding import StokerError, compare, decode, odd_files, pillow
from PIL import Image

Region = tuple[int, int, int, int]
SOI, EOI = b"\xff\xd8", b"\xff\xd9"
SUBSAMPLINGS = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}


def picture(draw: random.Random, width: int, height: int, mode: str = "RGB") -> Image.Image:
    """A smooth ground with noise on it, so that all kinds of coefficients are met."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    noise = np.frombuffer(draw.randbytes(width * height * bands), np.uint8).reshape(height, width, bands)
    y, x = np.mgrid[0:height, 0:width]
    ground = ((x * draw.randint(1, 9) + y * draw.randint(1, 9)) % 256)[:, :, None]
    share = draw.choice([0.05, 0.3, 1.0])
    values = (ground * (1 - share) + noise * share).astype(np.uint8)
    return Image.fromarray(values[:, :, 0] if bands == 1 else values, mode)


def encoded(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def random_file(draw: random.Random, width: int, height: int, **fixed: Any) -> bytes:
    """A sound file with random options of Pillow's encoder."""
    options: dict[str, Any] = {
        "quality": draw.choice([1, 10, 30, 50, 75, 90, 95, 100]),
        "subsampling": draw.choice(list(SUBSAMPLINGS.values())),
        "progressive": draw.random() < 0.3,
        "optimize": draw.random() < 0.3,
        "restart_marker_blocks": draw.choice([0, 0, 1, 2, 3, 7]),
        "restart_marker_rows": draw.choice([0, 0, 0, 1, 2]),
    }
    mode = fixed.pop("mode", None) or draw.choice(["RGB", "RGB", "RGB", "L", "CMYK"])
    return encoded(picture(draw, width, height, mode), **{**options, **fixed})


def random_region(draw: random.Random, width: int, height: int) -> Region:
    """Any part: a pixel, a row, a column, an edge, or something between."""
    kind = draw.randrange(8)
    across = 1 if kind in (0, 1) else width if kind == 2 else draw.randint(1, width)
    down = 1 if kind in (0, 2) else height if kind == 1 else draw.randint(1, height)
    left = draw.choice([0, width - across]) if kind in (3, 4) else draw.randint(0, width - across)
    top = draw.choice([0, height - down]) if kind in (4, 5) else draw.randint(0, height - down)
    return left, top, across, down


def check_regions(data: bytes, what: str, regions: list[Region]) -> None:
    """Compares regions with parts of Pillow's image, which is decoded once."""
    whole = pillow(data)
    assert not isinstance(whole, Exception), f"{what}: {whole!r}"
    for left, top, width, height in regions:
        pixels = decode(data, region=(left, top, width, height))
        same = np.array_equal(pixels, whole[top : top + height, left : left + width])
        assert same, f"{what}: region {(left, top, width, height)} differs"


def size_of(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


# ------------------------------------------------------------------------------------------------ a small writer

Sampling = tuple[tuple[int, int], ...]


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def flat_table(kind: int, symbols: bytes, bits: int) -> bytes:
    """A Huffman table in which all codes are equally long, so that a symbol's code is its place."""
    counts = bytearray(16)
    counts[bits - 1] = len(symbols)
    return segment(0xC4, bytes([kind]) + bytes(counts) + symbols)


AC_SYMBOLS = bytes([0x00, 0xF0, *(run << 4 | size for run in range(16) for size in range(1, 11))])


class Bits:
    def __init__(self) -> None:
        self.text: list[str] = []

    def put(self, value: int, count: int) -> None:
        if count:
            self.text.append(format(value, f"0{count}b"))

    def flush(self) -> bytes:
        text = "".join(self.text)
        text += "1" * (-len(text) % 8)
        self.text = []
        return int("1" + text, 2).to_bytes(len(text) // 8 + 1, "big")[1:].replace(b"\xff", b"\xff\0") if text else b""


def put_block(draw: random.Random, bits: Bits, busy: float) -> None:
    size = draw.choice([0, 1, 3, 5, 6])
    bits.put(size, 4)
    bits.put(draw.getrandbits(size) if size else 0, size)
    place = 1
    while place < 64 and draw.random() < busy:
        run, size = draw.choice([0, 0, 1, 2, 5, 15]), draw.choice([1, 1, 2, 3, 6])
        if place + run > 63:
            break
        bits.put(AC_SYMBOLS.index(run << 4 | size), 8)
        bits.put(draw.getrandbits(size), size)
        place += run + 1
    if place < 64:
        bits.put(0, 8)


def written(
    draw: random.Random, width: int, height: int, sampling: Sampling, restart: int = 0, separate: bool = False
) -> bytes:
    """A sound baseline file of random coefficients with these sampling factors, in one scan or in several."""
    parts = [SOI, segment(0xDB, bytes([0]) + bytes(draw.randint(1, 30) for _ in range(64)))]
    frame = b"".join(bytes([n + 1, h << 4 | v, 0]) for n, (h, v) in enumerate(sampling))
    parts.append(segment(0xC0, struct.pack(">BHHB", 8, height, width, len(sampling)) + frame))
    parts += [flat_table(0x00, bytes(range(12)), 4), flat_table(0x10, AC_SYMBOLS, 8)]
    if restart:
        parts.append(segment(0xDD, struct.pack(">H", restart)))
    most_h, most_v = (max(factor[i] for factor in sampling) for i in (0, 1))
    numbers = range(len(sampling))
    for scan in [[n] for n in numbers] if separate else [list(numbers)]:
        body = bytes([len(scan)]) + b"".join(bytes([n + 1, 0]) for n in scan) + bytes([0, 63, 0])
        parts.append(segment(0xDA, body))
        if len(scan) == 1:
            h, v = sampling[scan[0]]
            across, down = -(-width * h // (8 * most_h)), -(-height * v // (8 * most_v))
            blocks = 1
        else:
            across, down = -(-width // (8 * most_h)), -(-height // (8 * most_v))
            blocks = sum(h * v for h, v in sampling)
        bits, busy = Bits(), draw.choice([0.0, 0.5, 0.9])
        for unit in range(across * down):
            if restart and unit and unit % restart == 0:
                parts += [bits.flush(), bytes([0xFF, 0xD0 + (unit // restart - 1) % 8])]
            for _ in range(blocks):
                put_block(draw, bits, busy)
        parts.append(bits.flush())
    return b"".join([*parts, EOI])


def written_progressive(
    draw: random.Random, width: int, height: int, sampling: Sampling, factor: int, restart: int = 0
) -> bytes:
    """A progressive file with some first scans of some bands, in random order, and perhaps nothing but averages."""
    table = bytes([draw.choice([1, 8, 16]), *(draw.randint(1, factor) for _ in range(63))])
    parts = [SOI, segment(0xDB, bytes([0]) + table)]
    frame = b"".join(bytes([n + 1, h << 4 | v, 0]) for n, (h, v) in enumerate(sampling))
    parts.append(segment(0xC2, struct.pack(">BHHB", 8, height, width, len(sampling)) + frame))
    parts += [flat_table(0x00, bytes(range(12)), 4), flat_table(0x10, AC_SYMBOLS, 8)]
    if restart:
        parts.append(segment(0xDD, struct.pack(">H", restart)))
    most_h, most_v = (max(factor[i] for factor in sampling) for i in (0, 1))
    numbers = list(range(len(sampling)))
    together = sum(h * v for h, v in sampling) <= 10 and draw.random() < 0.7
    averages = [(numbers, 0, 0)] if together else [([n], 0, 0) for n in numbers if draw.random() < 0.95]
    bands = [([n], *draw.choice([(1, 5), (6, 63), (1, 63), (9, 9), (10, 63), (2, 3)])) for n in numbers]
    for scan, first, last in averages + draw.sample(bands, draw.randint(0, len(bands))):
        low = draw.choice([0, 0, 1, 2])
        body = bytes([len(scan)]) + b"".join(bytes([n + 1, 0]) for n in scan) + bytes([first, last, low])
        parts.append(segment(0xDA, body))
        if len(scan) == 1:
            h, v = sampling[scan[0]]
            across, down = -(-width * h // (8 * most_h)), -(-height * v // (8 * most_v))
            blocks = 1
        else:
            across, down = -(-width // (8 * most_h)), -(-height // (8 * most_v))
            blocks = sum(h * v for h, v in sampling)
        bits = Bits()
        for unit in range(across * down):
            if restart and unit and unit % restart == 0:
                parts += [bits.flush(), bytes([0xFF, 0xD0 + (unit // restart - 1) % 8])]
            for _ in range(blocks):
                if first == 0:
                    size = draw.choice([0, 1, 3, 5])
                    bits.put(size, 4)
                    bits.put(draw.getrandbits(size) if size else 0, size)
                    continue
                if draw.random() < 0.3:
                    size = draw.choice([1, 1, 2])
                    bits.put(AC_SYMBOLS.index(size), 8)
                    bits.put(draw.getrandbits(size), size)
                    if first == last:
                        continue
                bits.put(0, 8)
        parts.append(bits.flush())
    return b"".join([*parts, EOI])


def written_lossless(draw: random.Random, width: int, height: int, components: int, restart_rows: int) -> bytes:
    """A lossless file of random differences, with any predictor and point transform, its tables shared or not."""
    predictor, low = draw.randint(1, 7), draw.choice([0, 0, 0, 1, 3, 7])
    parts = [SOI, flat_table(0x00, bytes(range(17)), 5)]
    frame = b"".join(bytes([n + 1, 0x11, 0]) for n in range(components))
    parts.append(segment(0xC3, struct.pack(">BHHB", 8, height, width, components) + frame))
    if restart_rows:
        parts.append(segment(0xDD, struct.pack(">H", restart_rows * width)))
    scan = b"".join(bytes([n + 1, 0]) for n in range(components))
    parts.append(segment(0xDA, bytes([components]) + scan + bytes([predictor, 0, low])))
    bits = Bits()
    for y in range(height):
        if restart_rows and y and y % restart_rows == 0:
            parts += [bits.flush(), bytes([0xFF, 0xD0 + (y // restart_rows - 1) % 8])]
        for _ in range(width * components):
            size = draw.choice([0, 1, 2, 2, 3, 4, 7, 8, 16 if draw.random() < 0.1 else 5])
            bits.put(size, 5)
            bits.put(draw.getrandbits(size) if 0 < size < 16 else 0, size if size < 16 else 0)
    return b"".join([*parts, bits.flush(), EOI])


SAMPLINGS: list[Sampling] = [
    ((1, 1),),
    ((2, 2),),
    ((1, 1), (1, 1), (1, 1)),
    ((2, 1), (1, 1), (1, 1)),
    ((2, 2), (1, 1), (1, 1)),
    ((1, 2), (1, 1), (1, 1)),
    ((4, 1), (1, 1), (1, 1)),
    ((1, 4), (1, 1), (1, 1)),
    ((4, 2), (1, 1), (1, 1)),
    ((3, 1), (1, 1), (1, 1)),
    ((3, 3), (1, 1), (1, 1)),
    ((2, 2), (2, 1), (1, 2)),
    ((2, 2), (2, 2), (2, 2)),
    ((2, 2), (1, 2), (1, 2)),
    ((1, 1), (2, 2), (2, 2)),
    ((2, 1), (2, 1), (1, 1)),
    ((1, 1), (1, 1), (1, 1), (1, 1)),
    ((2, 2), (1, 1), (1, 1), (2, 2)),
]


# ----------------------------------------------------------------------------------------------------- real files


def test_every_photo_and_its_regions(photos: list[Path], comparisons: Any) -> None:
    draw = random.Random(1)
    for file in photos:
        data = file.read_bytes()
        assert compare(data, file.name)
        check_regions(data, file.name, [random_region(draw, *size_of(data)) for _ in range(6)])
    comparisons(7 * len(photos))


@pytest.mark.parametrize("folder", ["jpeg", "misnamed", "fuzz-jpeg"])
def test_odd_files(folder: str, comparisons: Any) -> None:
    draw = random.Random(11)
    files = odd_files(folder)
    count = len(files)
    for file in files:
        data = file.read_bytes()
        if compare(data, file.name) and size_of(data)[0] * size_of(data)[1] < 4_000_000:
            check_regions(data, file.name, [random_region(draw, *size_of(data)) for _ in range(4)])
            count += 4
    comparisons(count)


# ------------------------------------------------------------------------------------------------ files made here


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("progressive", [False, True])
def test_every_size(subsampling: str, progressive: bool, comparisons: Any) -> None:
    draw = random.Random(2)
    for width, height in itertools.product(range(1, 41), range(1, 41)):
        data = random_file(draw, width, height, subsampling=SUBSAMPLINGS[subsampling], progressive=progressive)
        what = f"{width} x {height} {subsampling}, progressive {progressive}"
        assert compare(data, what)
        check_regions(data, what, [random_region(draw, width, height) for _ in range(3)])
    comparisons(1600 * 4)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_options_of_the_encoder(mode: str, comparisons: Any) -> None:
    draw = random.Random(3)
    for number in range(400):
        width, height = draw.randint(1, 150), draw.randint(1, 150)
        data = random_file(draw, width, height, mode=mode)
        assert compare(data, f"file {number}")
        check_regions(data, f"file {number}", [random_region(draw, width, height) for _ in range(5)])
    comparisons(400 * 6)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=lambda s: "-".join(f"{h}x{v}" for h, v in s))
def test_every_sampling(sampling: Sampling, comparisons: Any) -> None:
    draw = random.Random(4)
    count = 0
    for number in range(150):
        width, height = draw.randint(1, 75), draw.randint(1, 75)
        restart = draw.choice([0, 0, 1, 2, 5])
        separate = sum(h * v for h, v in sampling) > 10 or (len(sampling) > 1 and draw.random() < 0.2)
        data = written(draw, width, height, sampling, restart, separate)
        what = f"file {number}, {width} x {height}, restart {restart}, separate {separate}"
        count += 1
        if compare(data, what):
            check_regions(data, what, [random_region(draw, width, height) for _ in range(5)])
            count += 5
        else:
            pytest.fail(f"{what}: Pillow must read this file")
    comparisons(count)


def test_every_region_of_a_small_image(comparisons: Any) -> None:
    draw = random.Random(5)
    count = 0
    for subsampling, restart in itertools.product(SUBSAMPLINGS.values(), (0, 1)):
        width, height = 35, 21
        data = random_file(
            draw,
            width,
            height,
            mode="RGB",
            subsampling=subsampling,
            progressive=False,
            restart_marker_blocks=restart,
            restart_marker_rows=0,
        )
        regions = [
            (left, top, across, down)
            for left in range(width)
            for top in range(height)
            for across in {1, 2, 9, width - left}
            for down in {1, 2, height - top}
            if left + across <= width and top + down <= height
        ]
        check_regions(data, f"subsampling {subsampling}, restart {restart}", regions)
        count += len(regions)
    comparisons(count)


def test_large_files_and_small_regions(comparisons: Any) -> None:
    draw = random.Random(6)
    for subsampling, mode in [(0, "RGB"), (1, "RGB"), (2, "RGB"), (2, "L"), (2, "CMYK")]:
        data = random_file(draw, 1300, 900, mode=mode, subsampling=subsampling, optimize=False, progressive=False)
        assert compare(data, f"subsampling {subsampling} {mode}")
        check_regions(data, f"{subsampling} {mode}", [random_region(draw, 1300, 900) for _ in range(60)])
    comparisons(5 * 61)


# --------------------------------------------------------------------------------------------------- broken files


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("restart", [0, 1])
def test_cut_at_every_byte(mode: str, restart: int, comparisons: Any) -> None:
    draw = random.Random(7)
    data = random_file(draw, 37, 29, mode=mode, progressive=False, restart_marker_blocks=restart, quality=50)
    for size in range(len(data)):
        compare(data[:size], f"{mode}, cut to {size} of {len(data)}")
        compare(data[:size] + EOI, f"{mode}, cut to {size} of {len(data)}, and ended")
    comparisons(2 * len(data))


def test_regions_of_broken_files(comparisons: Any) -> None:
    """A part has the verdict of the whole, wherever the damage lies."""
    draw = random.Random(8)
    for number in range(4000):
        width, height = draw.randint(1, 60), draw.randint(1, 60)
        data = bytearray(random_file(draw, width, height, progressive=False))
        start = data.rindex(b"\xff\xda")
        if draw.random() < 0.5:
            data = data[: draw.randint(start + 1, len(data))]
        if draw.random() < 0.7:
            for _ in range(draw.choice([1, 1, 2, 5])):
                data[draw.randrange(start, len(data))] = draw.choice([draw.randrange(256), 0xFF, 0xD9, 0xD3])
        if draw.random() < 0.3:
            data += draw.choice([EOI, b"\xff", b"\xff\xd3", b"trailing bytes", data[2:]])
        compare(bytes(data), f"file {number}", region=random_region(draw, width, height))
    comparisons(4000)


def test_flipped_bits(comparisons: Any) -> None:
    """Every bit of a small file's segments, and bits of its data."""
    draw = random.Random(9)
    count = 0
    for mode, subsampling in (("L", 0), ("RGB", 0), ("RGB", 2), ("CMYK", 0)):
        data = random_file(draw, 20, 18, mode=mode, subsampling=subsampling, progressive=False, optimize=True)
        frame = data.index(b"\xff\xc0")
        for bit in range(8 * len(data)):
            if frame + 5 <= bit // 8 < frame + 9 and bit % 8 > 3:
                continue  # no giants
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            compare(bytes(broken), f"{mode} {subsampling}, bit {bit}", region=None)
            count += 1
    comparisons(count)


# --------------------------------------------------------------------------------- progressive files that lack scans


def scan_ends(data: bytes) -> list[int]:
    """Where each scan's data end."""
    ends = []
    for start in (at for at in range(len(data)) if data[at : at + 2] == b"\xff\xda"):
        at = start + 2
        while data[at] != 0xFF or data[at + 1] in (0, *range(0xD0, 0xD8)):
            at += 1
        ends.append(at)
    return ends


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_missing_scans_are_guessed_as_by_pillow(mode: str, comparisons: Any) -> None:
    draw = random.Random(12)
    count = 0
    for number in range(300):
        width, height = draw.randint(1, 90), draw.randint(1, 120)
        data = random_file(draw, width, height, mode=mode, progressive=True)
        for end in scan_ends(data):
            assert compare(data[:end] + EOI, f"file {number}, cut to {end}")
            count += 1
    comparisons(count)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=lambda s: "-".join(f"{h}x{v}" for h, v in s))
def test_any_scans_of_any_sampling(sampling: Sampling, comparisons: Any) -> None:
    draw = random.Random(13)
    for number in range(120):
        width, height = draw.randint(1, 75), draw.randint(1, 140)
        data = written_progressive(draw, width, height, sampling, draw.choice([1, 9]), draw.choice([0, 0, 1, 2, 5]))
        if draw.random() < 0.3:
            data = data[: draw.randint(min(data.index(b"\xff\xda") + 20, len(data)), len(data))] + EOI
        compare(data, f"file {number}, {width} x {height}", region=draw.choice([None, (0, 0, 1, 1)]))
        compare(data, f"file {number}, {width} x {height}")
    comparisons(240)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_broken_progressive_files(mode: str, comparisons: Any) -> None:
    """Below the row in which a scan's data run out, what was known before that scan decides."""
    draw = random.Random(14)
    for number in range(1500):
        data = bytearray(random_file(draw, draw.randint(1, 70), draw.randint(1, 120), mode=mode, progressive=True))
        start = data.index(b"\xff\xda")
        if draw.random() < 0.6:
            data = data[: draw.randint(start + 1, len(data))] + draw.choice([EOI, EOI, b""])
        if draw.random() < 0.6:
            for _ in range(draw.choice([1, 1, 2, 5])):
                data[draw.randrange(start, len(data))] = draw.choice([draw.randrange(256), 0xFF, 0xD9, 0xD3])
        compare(bytes(data), f"file {number}")
    comparisons(1500)


# -------------------------------------------------------------------------------------------------------- lossless


@pytest.mark.parametrize("components", [1, 3, 4])
def test_lossless(components: int, comparisons: Any) -> None:
    draw = random.Random(16)
    count = 0
    for number in range(250):
        width, height = draw.randint(1, 40), draw.randint(1, 40)
        data = written_lossless(draw, width, height, components, draw.choice([0, 0, 1, 2, 5]))
        assert compare(data, f"file {number}"), "Pillow must read this file"
        check_regions(data, f"file {number}", [random_region(draw, width, height) for _ in range(3)])
        count += 4
        if b"\xff\xdd" in data:
            continue
        start = data.index(b"\xff\xda") + 8 + 2 * components
        for _ in range(6):
            broken = bytearray(data[: draw.randint(start + 1, len(data))] if draw.random() < 0.5 else data)
            if draw.random() < 0.5:
                broken += EOI
            for _ in range(draw.choice([0, 1, 3])):
                broken[draw.randrange(start, len(broken))] = draw.choice([draw.randrange(256), 0xFF, 0xD9, 0xD3])
            compare(bytes(broken), f"file {number}, broken")
        count += 6
    comparisons(count)


# ------------------------------------------------------------------------------------------------- limits, orientation


def test_limits() -> None:
    draw = random.Random(10)
    data = random_file(draw, 20, 10, mode="RGB", progressive=True)
    scans = data.count(b"\xff\xda")
    assert decode(data, max_pixels=200).shape == (10, 20, 3)
    with pytest.raises(StokerError, match="max_pixels"):
        decode(data, max_pixels=199)
    assert decode(data, max_scans=scans).shape == (10, 20, 3)
    with pytest.raises(StokerError, match="max_scans"):
        decode(data, max_scans=scans - 1)
    giant = bytearray(data)
    frame = giant.index(b"\xff\xc2")
    giant[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    with pytest.raises(StokerError, match="max_pixels"):
        decode(bytes(giant))


@pytest.mark.parametrize("orientation", range(10))
def test_regions_of_turned_images(orientation: int, comparisons: Any) -> None:
    draw = random.Random(orientation)
    exif = Image.Exif()
    exif[0x0112] = orientation
    for number in range(60):
        data = random_file(draw, draw.randint(1, 60), draw.randint(1, 60), exif=exif)
        assert compare(data, f"file {number}", exif_orientation=True)
        height, width = decode(data, exif_orientation=True).shape[:2]
        for _ in range(4):
            region = random_region(draw, width, height)
            assert compare(data, f"file {number}, {region}", region=region, exif_orientation=True)
    comparisons(60 * 5)


def test_exif_in_several_segments(comparisons: Any) -> None:
    """They are one block, wherever it is cut; and a second name at its head is passed over."""
    draw = random.Random(15)
    plain = encoded(picture(draw, 20, 10))
    exif = Image.Exif()
    exif[0x010E] = "a description long enough to lie outside of the list"
    exif[0x0112] = 6
    block = exif.tobytes()[6:]
    name = b"Exif\0\0"
    count = 0
    for cut in range(len(block) + 1):
        for between in (b"", segment(0xFE, b"comment"), segment(0xE1, name)):
            segments = segment(0xE1, name + block[:cut]) + between + segment(0xE1, name + block[cut:])
            for data in (SOI + segments + plain[2:], plain[:20] + segments + plain[20:]):
                compare(data, f"cut at {cut}, {between!r} between", exif_orientation=True)
                count += 1
    three = b"".join(segment(0xE1, name + part) for part in (name, block[:10], block[10:] + bytes(60000)))
    assert compare(SOI + three + plain[2:], "three segments", exif_orientation=True)
    comparisons(count + 1)
