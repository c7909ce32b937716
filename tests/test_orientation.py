# SPDX-License-Identifier: Apache-2.0
"""EXIF orientation: left alone by default; with exif_orientation as PIL.ImageOps.exif_transpose turns the image."""

from __future__ import annotations

import io
import random
import struct
import warnings
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from decoding import TURNS, compare, decode, odd_files
from PIL import Image

Comparisons = Callable[[int], None]

BYTE, ASCII, SHORT, LONG, RATIONAL, SIGNED_BYTE, UNDEFINED, SIGNED_SHORT, SIGNED_LONG, SIGNED_RATIONAL = range(1, 11)
FLOAT, DOUBLE, IFD, LONG8 = 11, 12, 13, 16
ORIENTATION = 0x0112


def picture() -> Image.Image:
    return Image.fromarray(np.random.default_rng(1).integers(0, 256, (7, 11, 3), dtype=np.uint8))


def block(tags: list[tuple[int, int, int, bytes]], order: str = "<", magic: bytes | None = None, at: int = 8) -> bytes:
    """An EXIF block: (tag, type, count, value); a value of more than four bytes goes behind the list."""
    head = (magic or {"<": b"II*\0", ">": b"MM\0*"}[order]) + struct.pack(order + "L", at)
    entries, behind = b"", b""
    for tag, kind, count, value in tags:
        if len(value) > 4:
            place = at + 2 + 12 * len(tags) + 4 + len(behind)
            behind += value
            value = struct.pack(order + "L", place)
        entries += struct.pack(order + "HHL", tag, kind, count) + value.ljust(4, b"\0")
    return head + bytes(at - 8) + struct.pack(order + "H", len(tags)) + entries + bytes(4) + behind


def values(order: str, n: int) -> list[tuple[int, int, int, bytes]]:
    """The orientation `n` in every type that a tag may have."""
    p = struct.pack
    return [
        (ORIENTATION, SHORT, 1, p(order + "H", n)),
        (ORIENTATION, SHORT, 2, p(order + "HH", n, 3)),
        (ORIENTATION, SHORT, 3, p(order + "HHH", n, 3, 3)),
        (ORIENTATION, SHORT, 0, b""),
        (ORIENTATION, LONG, 1, p(order + "L", n)),
        (ORIENTATION, IFD, 1, p(order + "L", n)),
        (ORIENTATION, BYTE, 1, p("B", n)),
        (ORIENTATION, UNDEFINED, 1, p("B", n)),
        (ORIENTATION, ASCII, 2, b"%d\0" % n),
        (ORIENTATION, SIGNED_BYTE, 1, p("b", n)),
        (ORIENTATION, SIGNED_SHORT, 1, p(order + "h", n)),
        (ORIENTATION, SIGNED_LONG, 1, p(order + "l", n)),
        (ORIENTATION, RATIONAL, 1, p(order + "LL", n, 1)),
        (ORIENTATION, RATIONAL, 1, p(order + "LL", 3 * n, 3)),
        (ORIENTATION, RATIONAL, 1, p(order + "LL", n, 2)),
        (ORIENTATION, RATIONAL, 1, p(order + "LL", n, 0)),
        (ORIENTATION, SIGNED_RATIONAL, 1, p(order + "ll", -n, -1)),
        (ORIENTATION, FLOAT, 1, p(order + "f", n)),
        (ORIENTATION, DOUBLE, 1, p(order + "d", n)),
        (ORIENTATION, DOUBLE, 1, p(order + "d", n + 0.25)),
        (ORIENTATION, LONG8, 1, p(order + "Q", n)),
        (ORIENTATION, 99, 1, p(order + "H", n)),
    ]


def png_with(*chunks: tuple[bytes, bytes], after: bool = False) -> bytes:
    """A PNG file with these chunks before, or after, its image data."""
    out = io.BytesIO()
    picture().save(out, "PNG")
    data = out.getvalue()
    place = data.index(b"IEND") - 4 if after else 33
    extra = b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return data[:place] + extra + data[place:]


def webp_with(exif: bytes, xmp: bytes = b"") -> bytes:
    out = io.BytesIO()
    picture().save(out, "WEBP", lossless=True, exif=exif, xmp=xmp)
    return out.getvalue()


def jpeg_with(exif: bytes, xmp: bytes = b"") -> bytes:
    out = io.BytesIO()
    picture().save(out, "JPEG", exif=exif, xmp=xmp)
    return out.getvalue()


HOLDERS = {
    "png": lambda exif: png_with((b"eXIf", exif)),
    "png, behind the data": lambda exif: png_with((b"eXIf", exif), after=True),
    "webp": lambda exif: webp_with(exif),
    "jpeg": lambda exif: jpeg_with(b"Exif\0\0" + exif),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_orientation_in_every_type(holder: str, comparisons: Comparisons) -> None:
    count = 0
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100):
        for order in "<>":
            for tag in values(order, n):
                others = [(0x010F, ASCII, 9, b"a camera\0"), (0x0131, ASCII, 3, b"me\0")]
                data = HOLDERS[holder](block([others[0], tag, others[1]], order))
                compare(data, f"{n} in {order}, type {tag[1]}", exif_orientation=True)
                compare(data, f"{n} in {order}, type {tag[1]}, left alone")
                count += 2
    comparisons(count)


def test_left_alone_by_default() -> None:
    data = HOLDERS["png"](block([(ORIENTATION, SHORT, 1, b"\6\0")]))
    assert decode(data).shape == (7, 11, 3)
    assert decode(data, exif_orientation=True).shape == (11, 7, 3)


@pytest.mark.parametrize("holder", HOLDERS)
def test_regions_of_turned_images(holder: str, comparisons: Comparisons) -> None:
    draw = random.Random(3)
    for n in range(1, 9):
        data = HOLDERS[holder](block([(ORIENTATION, SHORT, 1, struct.pack("<H", n))]))
        width, height = (7, 11) if n >= 5 else (11, 7)
        for _ in range(30):
            left, top = draw.randrange(width), draw.randrange(height)
            region = (left, top, draw.randint(1, width - left), draw.randint(1, height - top))
            assert compare(data, f"orientation {n}, region {region}", region=region, exif_orientation=True)
    comparisons(8 * 30)


@pytest.mark.parametrize("holder", HOLDERS)
def test_damaged_blocks(holder: str, comparisons: Comparisons) -> None:
    draw = random.Random(4)
    whole = block(
        [(0x010F, ASCII, 9, b"a camera\0"), (ORIENTATION, SHORT, 1, b"\6\0"), (0x9999, LONG, 3, bytes(12))], at=10
    )
    blocks = [whole[:size] for size in range(len(whole) + 1)]
    blocks += [b"Exif\0\0" * n + whole for n in (1, 2, 3)]
    blocks += [
        block([(ORIENTATION, SHORT, 1, b"\0\6\0\6")], ">", magic) for magic in (b"MM\0*", b"MM*\0", b"MM\0+", b"MN\0*")
    ]
    blocks += [block([(ORIENTATION, SHORT, 1, b"\6\0")], "<", magic) for magic in (b"II\0*", b"II+\0", b"IM*\0")]
    blocks += [
        block([(0x010F, ASCII, 1 << 30, b"12345"), (ORIENTATION, SHORT, 1, b"\6\0")]),
        block([(ORIENTATION, SHORT, 1, b"\6\0"), (ORIENTATION, SHORT, 1, b"\3\0")]),
        block([(ORIENTATION, 99, 1, b"\6\0"), (ORIENTATION, SHORT, 1, b"\3\0")]),
        block([(ORIENTATION, SHORT, 0, b""), (ORIENTATION, SHORT, 1, b"\3\0")]),
        whole[:4] + struct.pack("<L", 1 << 31) + whole[8:],
    ]
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            broken[draw.randrange(len(broken))] = draw.choice([0, 1, 2, 3, 6, 8, 255, draw.randrange(256)])
        blocks.append(bytes(broken))
    for number, damaged in enumerate(blocks):
        compare(HOLDERS[holder](damaged), f"block {number}: {damaged.hex(' ')}", exif_orientation=True)
    comparisons(len(blocks))


XMP = [
    b"",
    b'<x tiff:Orientation="6">',
    b"<tiff:Orientation>8</tiff:Orientation>",
    b'<x tiff:Orientation="9"> tiff:Orientation="3"',
    b'<x tiff:Orientation="x"> tiff:Orientation="3"',
    b'tiff:Orientation tiff:Orientation="',
    b'tiff:Orientation="',
    b"tiff:Orientation=",
    b"tiff:Orientation",
    b'tiff:Orientation="5',
    b'tiff:tiff:Orientation="63"',
]


def test_xmp_where_exif_tells_nothing(comparisons: Comparisons) -> None:
    empty = block([(0x010F, ASCII, 2, b"a\0")])
    tagged = block([(ORIENTATION, SHORT, 1, b"\1\0")])
    count = 0
    for xmp in XMP:
        for exif in (b"", empty, tagged):
            files = [webp_with(exif, xmp), jpeg_with(b"Exif\0\0" + exif if exif else b"", xmp)]
            head = [(b"eXIf", exif)] if exif else []
            key = b"XML:com.adobe.xmp\0"
            files.append(png_with(*head, (b"iTXt", key + b"\0\0\0\0" + xmp)))
            files.append(png_with(*head, (b"iTXt", key + b"\1\0\0\0" + zlib.compress(xmp))))
            files.append(png_with(*head, (b"iTXt", key + b"\0\0\0\0" + xmp + b"\xff"), after=True))
            files.append(png_with(*head, (b"tEXt", key + xmp)))
            files.append(png_with(*head, (b"zTXt", key + b"\0" + zlib.compress(xmp))))
            for number, data in enumerate(files):
                compare(data, f"{xmp!r}, exif {exif!r}, file {number}", exif_orientation=True)
            count += len(files)
    comparisons(count)


def test_raw_profiles(comparisons: Comparisons) -> None:
    """EXIF as ImageMagick wrote it before PNG had a chunk for it: hexadecimal text."""
    exif = block([(ORIENTATION, SHORT, 1, b"\6\0")])
    text = exif.hex().encode()
    bodies = [
        text,
        text.upper(),
        text[:20] + b"\n" + text[20:],
        text[:21] + b"\n" + text[21:],
        text[:20] + b" \t\r" + text[20:],
        text[:21] + b" " + text[21:],
        text + b" ",
        text + b" \n ",
        text[:-1],
        text + b"xy",
        (b"Exif\0\0" + exif).hex().encode(),
        (b"Exif\0\0" * 3 + exif).hex().encode(),
        b"",
    ]
    key = b"Raw profile type exif\0"
    count = 0
    for body in bodies:
        for head in (b"\nexif\n%8d\n" % len(exif), b"\n\n", b"\n\n\n", b""):
            for after in (False, True):
                plain = png_with((b"tEXt", key + head + body), after=after)
                packed = png_with((b"zTXt", key + b"\0" + zlib.compress(head + body)), after=after)
                compare(plain, f"plain {head!r} {body!r}", exif_orientation=True)
                compare(packed, f"packed {head!r} {body!r}", exif_orientation=True)
                count += 2
    for prefix in (b"", b"Exif\0\0", b"Exif\0\0Exif\0\0"):
        data = png_with((b"tEXt", b"exif\0" + prefix + exif))
        compare(data, f"a text named exif, {prefix!r}", exif_orientation=True)
    comparisons(count + 3)


def orientation(data: bytes) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Image.open(io.BytesIO(data)).getexif().get(ORIENTATION, 1)
    except Exception:  # Pillow raises whatever it stumbles over
        return 1


@pytest.mark.parametrize("folder", ["png", "webp", "jpeg", "misnamed"])
def test_odd_files_upright(folder: str, comparisons: Comparisons) -> None:
    """Of the JPEG files those that are turned: the others are test_jpeg_parity's."""
    count = 0
    for file in odd_files(folder):
        data = file.read_bytes()
        if folder != "jpeg" or orientation(data) in TURNS:
            compare(data, file.name, exif_orientation=True)
            count += 1
    comparisons(count)
