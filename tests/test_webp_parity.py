# SPDX-License-Identifier: Apache-2.0
"""WebP: Pillow's pixels, bit for bit, and an error exactly where Pillow raises.

Pillow carries a libwebp of its own, newer than the system's; so these tests also say that the two agree.
"""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pytest
from decoding import StokerError, compare, decode, odd_files
from PIL import Image


def picture(draw: random.Random, width: int, height: int, mode: str) -> Image.Image:
    """A gradient with noise of some strength, so that every part of the codec is met; alpha of all kinds."""
    channels = len(mode)
    values = np.random.default_rng(draw.randrange(1 << 30)).integers(-1, 2, (height, width, channels)) * draw.choice(
        [0, 9, 99]
    )
    values += np.arange(width)[None, :, None] * draw.randint(0, 9) + np.arange(height)[:, None, None] * draw.randint(
        0, 9
    )
    return Image.fromarray((values % 256).astype(np.uint8), mode)


def encode(draw: random.Random, width: int, height: int) -> bytes:
    mode = draw.choice(["RGB", "RGBA"])
    options: dict[str, Any] = {
        "lossless": draw.random() < 0.4,
        "quality": draw.randint(0, 100),
        "method": draw.randint(0, 6),
    }
    if draw.random() < 0.3:
        options["exact"] = True
    if draw.random() < 0.2:
        options["icc_profile"] = b"a profile"
    if draw.random() < 0.3:
        others = [picture(draw, width, height, mode) for _ in range(draw.randint(1, 3))]
        options |= {"save_all": True, "append_images": others, "background": (10, 20, 30, 40)}
    out = io.BytesIO()
    picture(draw, width, height, mode).save(out, "WEBP", **options)
    return out.getvalue()


def test_odd_files(comparisons: Any) -> None:
    files = odd_files("webp")
    for file in files:
        compare(file.read_bytes(), file.name)
    comparisons(len(files))


def test_every_size_and_kind(comparisons: Any) -> None:
    draw = random.Random(1)
    sizes = [(w, h) for w in range(1, 41) for h in range(1, 41) if w < 6 or h < 6 or draw.random() < 0.15]
    for width, height in [*sizes, (1, 2000), (2000, 1), (640, 480)]:
        assert compare(encode(draw, width, height), f"{width} x {height}"), "Pillow must read this file"
    comparisons(len(sizes) + 3)


def test_a_region_is_cut_out_of_the_whole(comparisons: Any) -> None:
    draw = random.Random(2)
    for number in range(150):
        width, height = draw.randint(1, 60), draw.randint(1, 60)
        left, top = draw.randrange(width), draw.randrange(height)
        region = (left, top, draw.randint(1, width - left), draw.randint(1, height - top))
        assert compare(encode(draw, width, height), f"file {number}, region {region}", region=region)
    comparisons(150)


def test_a_first_frame_smaller_than_the_canvas(comparisons: Any) -> None:
    """Offsets are written into the file by hand: Pillow's writer does not make such files."""
    draw = random.Random(3)
    for number in range(60):
        out = io.BytesIO()
        frames = [picture(draw, 16, 12, "RGBA") for _ in range(2)]
        frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], lossless=draw.random() < 0.5)
        data = bytearray(out.getvalue())
        frame = data.index(b"ANMF") + 8
        data[frame : frame + 6] = bytes([draw.randrange(6), 0, 0, draw.randrange(6), 0, 0])  # in units of two pixels
        canvas = data.index(b"VP8X") + 12
        data[canvas : canvas + 6] = bytes([draw.randint(15, 30), 0, 0, draw.randint(11, 26), 0, 0])
        compare(bytes(data), f"file {number}")
    comparisons(60)


@pytest.mark.parametrize("where", ["head", "anywhere"])
def test_bits_flipped_and_files_cut(where: str, comparisons: Any) -> None:
    draw = random.Random(where)
    files = [encode(draw, draw.randint(1, 30), draw.randint(1, 30)) for _ in range(30)]
    for number in range(3000):
        data = bytearray(draw.choice(files))
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            place = draw.randrange(min(len(data), 40 if where == "head" else len(data)))
            data[place] ^= 1 << draw.randrange(8)
        if data[12:16] == b"VP8X":
            data[25] &= 3  # no giant canvas
            data[26] = data[28] = data[29] = 0
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
        compare(bytes(data), f"file {number}")
    comparisons(3000)


def test_cut_at_every_byte(comparisons: Any) -> None:
    draw = random.Random(4)
    count = 0
    for _ in range(8):
        data = encode(draw, 7, 5)
        for size in range(len(data)):
            compare(data[:size], f"{size} of {len(data)} bytes")
        compare(data + b"more", "bytes after the end")
        count += len(data) + 1
    comparisons(count)


def test_size_limit() -> None:
    data = encode(random.Random(5), 20, 10)
    with pytest.raises(StokerError, match="max_pixels"):
        decode(data, max_pixels=199)
    assert decode(data, max_pixels=200).shape == (10, 20, 3)
