# SPDX-License-Identifier: Apache-2.0
"""What a file is, is told by its bytes: formats that are not read are named; what Pillow refuses is refused."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
from decoding import StokerError, compare, decode, odd_files
from PIL import Image


def saved(name: str, mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (8, 8), 1).save(out, name)
    return out.getvalue()


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("GIF", "GIF image"),
        ("TIFF", "TIFF image"),
        ("BMP", "BMP image"),
        ("PPM", "PPM image"),
        ("JPEG2000", "JPEG 2000 image"),
        ("ICO", "ICO image"),
        ("AVIF", "AVIF image"),
        ("PDF", "PDF file, not an image"),
        ("DDS", "DDS image"),
    ],
)
def test_formats_that_pillow_writes_are_named(format: str, name: str) -> None:
    with pytest.raises(StokerError, match=f"unsupported: {name}"):
        decode(saved(format))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (gzip.compress(saved("JPEG")), "unsupported: gzip-compressed file, not an image"),
        (b"PK\3\4" + bytes(30), "unsupported: zip archive, not an image"),
        (b"8BPS" + bytes(30), "unsupported: Photoshop image"),
        (b"\0\0\0\x18ftypheic" + bytes(30), "unsupported: HEIC image"),
        (b"\xff\x0a" + bytes(30), "unsupported: JPEG XL image"),
        (b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(30), "unsupported: JPEG XL image"),
        (b"\xff\xd8\xff\xf7\0\x0b\x08" + bytes(30), "unsupported: JPEG-LS image"),
        (b"P5 1 1 255 a", "unsupported: PGM image"),
        (b"P4\n1 1\na", "unsupported: PBM image"),
        (b"", "not an image: an empty file"),
        (b"<!DOCTYPE html><title>404</title>", "not an image: an HTML page"),
        (b"\xef\xbb\xbf\n <HTML>gone", "not an image: an HTML page"),
        (b"this is a letter, not a picture", "not an image: a text"),
        (bytes(range(1, 200)), "not an image: of no known kind"),
        (b"\xff\xd8", "not an image: of no known kind"),
        (b"\x89PNG", "not an image: of no known kind"),
        (b"RIFF\4\0\0\0WAVE", "unsupported: RIFF file"),
    ],
)
def test_other_bytes_are_named(data: bytes, name: str) -> None:
    with pytest.raises(StokerError, match=name):
        decode(data)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_a_magic_alone_is_an_error(format: str, comparisons: Any) -> None:
    """Cut within the first bytes, where one plugin hands over to the next."""
    data = saved(format)
    for size in range(64):
        compare(data[:size], f"{format}, {size} bytes")
    comparisons(64)


def test_misnamed_files(comparisons: Any) -> None:
    files = odd_files("misnamed")
    for file in files:
        compare(file.read_bytes(), file.name)
    comparisons(len(files))


def test_pixels_do_not_depend_on_who_is_decoded_before(comparisons: Any) -> None:
    """One decoder after another over the same memory: formats and sizes in turn."""
    draw = np.random.default_rng(3)
    for number in range(60):
        width, height = draw.integers(1, 90, 2)
        out = io.BytesIO()
        image = Image.fromarray(draw.integers(0, 256, (height, width, 3), dtype=np.uint8))
        image.save(out, ["PNG", "WEBP", "JPEG"][number % 3], lossless=True)
        assert compare(out.getvalue(), f"image {number}")
    comparisons(60)


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def png_header(width: int, height: int, depth: int) -> tuple[bytes, bytes]:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)


def animated(format: str) -> bytes:
    out = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    frames[0].save(out, format, save_all=True, append_images=frames[1:])
    return out.getvalue()


END = (b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("whole.png", png(png_header(2, 2, 8), (b"IDAT", zlib.compress(bytes(6))), END), ""),
        (
            "early.png",
            png(png_header(2, 2, 8), (b"IDAT", zlib.compress(bytes(3))), END),
            "the rest of the image is blank",
        ),
        ("cut.png", png(png_header(2, 2, 8), (b"IDAT", zlib.compress(bytes(6)))), "cut off after the image data"),
        ("gray.png", png(png_header(2, 2, 16), (b"IDAT", zlib.compress(bytes(10))), END), "16-bit gray, clipped"),
        ("film.png", animated("PNG"), "animated"),
        ("film.webp", animated("WEBP"), "animated"),
        ("still.webp", saved("WEBP"), ""),
        ("named.jpg", saved("PNG"), "named as jpeg, is png"),
        ("NAMED.PNG", saved("WEBP"), "named as png, is webp"),
    ],
)
def test_what_is_passed_over_is_told(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    """Files that Pillow reads without a word and that a user would want to know of."""
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / name).write_bytes(data)
    check = stoker.Dataset(tmp_path).check(0)
    assert check.verdict == ("suspect" if reason else "sound")
    assert reason in check.reason
