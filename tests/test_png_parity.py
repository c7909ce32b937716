# SPDX-License-Identifier: Apache-2.0
"""PNG: Pillow's pixels, bit for bit, and an error exactly where Pillow raises.

Most files here come from a small writer of its own. Its rows are random bytes, since any bytes after a filter's number
are a legal row; so all five filters, every kind of pixel and every size are met, without a reference in the way.
"""

from __future__ import annotations

import itertools
import random
import struct
import zlib
from typing import Any

import pytest
from decoding import StokerError, compare, decode, odd_files

MAGIC = b"\x89PNG\r\n\x1a\n"
KINDS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))

Chunk = tuple[bytes, bytes]


def pack(chunks: list[Chunk]) -> bytes:
    """The file that holds `chunks`, each with its right checksum."""
    return MAGIC + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def header(width: int, height: int, depth: int, color: int, interlaced: int = 0) -> Chunk:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)


def rows(draw: random.Random, width: int, height: int, depth: int, color: int, interlaced: int) -> bytes:
    """Filtered rows of random bytes."""
    bits = depth * SAMPLES[color]
    sizes: list[int] = []
    if interlaced:
        for left, top, across, down in PASSES:
            count = max(0, -(-(width - left) // across))
            if count:
                sizes += [(count * bits + 7) // 8] * max(0, -(-(height - top) // down))
    else:
        sizes = [(width * bits + 7) // 8] * height
    return b"".join(bytes([draw.randrange(5)]) + draw.randbytes(size) for size in sizes)


def image_chunks(
    draw: random.Random, width: int, height: int, depth: int, color: int, interlaced: int = 0
) -> list[Chunk]:
    """A sound file's chunks; the data are cut into IDAT chunks of random sizes, now and then an empty one."""
    chunks = [header(width, height, depth, color, interlaced)]
    if color == 3:
        chunks.append((b"PLTE", draw.randbytes(3 * draw.randint(1, 256))))
    if color in (0, 2, 3) and draw.random() < 0.3:
        alphas = draw.choice([b"\xff\xff\x00\xff", draw.randbytes(draw.randint(1, 20))])
        chunks.append((b"tRNS", {0: draw.randbytes(2), 2: draw.randbytes(6), 3: alphas}[color]))
    data = zlib.compress(rows(draw, width, height, depth, color, interlaced), draw.choice([0, 1, 6]))
    if draw.random() < 0.5:
        cuts = sorted(draw.choices(range(len(data) + 1), k=draw.randint(1, 4)))
        chunks += [(b"IDAT", data[a:b]) for a, b in itertools.pairwise([0, *cuts, len(data)])]
    else:
        chunks.append((b"IDAT", data))
    return [*chunks, (b"IEND", b"")]


def random_kind(draw: random.Random) -> tuple[int, int]:
    color = draw.choice(list(KINDS))
    return draw.choice(KINDS[color]), color


@pytest.mark.parametrize("folder", ["png", "misnamed"])
def test_odd_files(folder: str, comparisons: Any) -> None:
    files = odd_files(folder)
    for file in files:
        compare(file.read_bytes(), file.name)
    comparisons(len(files))


@pytest.mark.parametrize(("depth", "color"), [(depth, color) for color, depths in KINDS.items() for depth in depths])
def test_every_kind_and_size(depth: int, color: int, comparisons: Any) -> None:
    draw = random.Random(depth * 10 + color)
    sizes = [(w, h) for w in range(1, 41) for h in range(1, 41) if (w <= 9 and h <= 9) or draw.random() < 0.1]
    sizes += [(1, 3000), (3000, 1), (700, 500), (256, 256)]
    for width, height in sizes:
        for interlaced in (0, 1):
            data = pack(image_chunks(draw, width, height, depth, color, interlaced))
            assert compare(data, f"{width} x {height}, interlaced {interlaced}"), "Pillow must read this file"
    comparisons(2 * len(sizes))


def test_a_region_is_cut_out_of_the_whole(comparisons: Any) -> None:
    draw = random.Random(5)
    for number in range(400):
        depth, color = random_kind(draw)
        width, height = draw.randint(1, 60), draw.randint(1, 60)
        left, top = draw.randrange(width), draw.randrange(height)
        region = (left, top, draw.randint(1, width - left), draw.randint(1, height - top))
        data = pack(image_chunks(draw, width, height, depth, color, draw.randrange(2)))
        assert compare(data, f"file {number}, region {region}", region=region)
    comparisons(400)


def test_palettes_of_every_length(comparisons: Any) -> None:
    """Entries that are missing are black; more than 256 are refused, but for two stray bytes."""
    draw = random.Random(6)
    data = zlib.compress(b"".join(b"\0" + bytes(range(16 * y, 16 * y + 16)) for y in range(16)))
    count = 0
    for size in [*range(0, 12), *range(750, 780), 1000, 3000]:
        for transparency in (b"", b"\xff\x00", b"\x80\x00", b"\xff\x00\n", b"\x00\x00", bytes(300)):
            chunks = [header(16, 16, 8, 3), (b"PLTE", draw.randbytes(size)), (b"tRNS", transparency), (b"IDAT", data)]
            compare(pack([*chunks, (b"IEND", b"")]), f"palette of {size} bytes, transparency {transparency!r}")
            count += 1
    for transparency in (None, b"\xff\x00", b"\x80\x00", b""):
        extra = [] if transparency is None else [(b"tRNS", transparency)]
        compare(pack([header(16, 16, 8, 3), *extra, (b"IDAT", data), (b"IEND", b"")]), f"no palette, {transparency!r}")
    comparisons(count + 4)


def test_16_bit_gray_is_clipped(comparisons: Any) -> None:
    values = struct.pack(">65536H", *range(65536))
    data = zlib.compress(b"".join(b"\0" + values[512 * y : 512 * y + 512] for y in range(256)))
    assert compare(pack([header(256, 256, 16, 0), (b"IDAT", data), (b"IEND", b"")]), "every 16-bit gray")
    comparisons(1)


def test_cut_at_every_byte(comparisons: Any) -> None:
    draw = random.Random(7)
    count = 0
    for color, depths in KINDS.items():
        for interlaced in (0, 1):
            chunks = image_chunks(draw, draw.randint(1, 12), draw.randint(1, 12), depths[-1], color, interlaced)
            chunks[-1:] = [(b"tEXt", b"Comment\0after the image"), (b"IEND", b"")]
            data = pack(chunks)
            for size in range(len(data)):
                compare(data[:size], f"color {color}, cut to {size} of {len(data)}")
            count += len(data)
    comparisons(count)


def test_data_that_end_early_or_late(comparisons: Any) -> None:
    """A stream that ends after any number of bytes, with and without its checksum, in one piece and in many."""
    draw = random.Random(8)
    count = 0
    for color, interlaced in itertools.product(KINDS, (0, 1)):
        for _ in range(6):
            depth = draw.choice(KINDS[color])
            width, height = draw.randint(1, 9), draw.randint(1, 9)
            raw = rows(draw, width, height, depth, color, interlaced)
            if draw.random() < 0.5:
                raw = bytes(len(raw))  # compresses to matches that reach over rows
            head = [header(width, height, depth, color, interlaced), (b"PLTE", draw.randbytes(30))]
            for size in [*range(len(raw)), *range(len(raw), len(raw) + 4)]:
                whole = zlib.compress((raw + bytes(4))[:size], draw.choice([0, 1, 9]))
                for data in (
                    whole,
                    whole[:-4],
                    whole[:-1],
                    whole[:-4] + b"\0\0\0\0",
                    whole + b"more",
                    whole[: size // 2],
                ):
                    cut = draw.randint(0, len(data))
                    for parts in ([data], [data[:cut], data[cut:]], [data[:-4], data[-4:]]):
                        tail = draw.choice([[(b"IEND", b"")], [], [(b"IDAT", b"xyz"), (b"IEND", b"")]])
                        file = pack([*head, *((b"IDAT", part) for part in parts), *tail])
                        compare(file, f"{width} x {height} {depth}/{color}/{interlaced}, {size} of {len(raw)} bytes")
                        count += 1
            if count > 12000:
                break
    comparisons(count)


def test_every_bit_flipped_in_small_files(comparisons: Any) -> None:
    """With the checksums as they were, and put right again."""
    draw = random.Random(9)
    count = 0
    for color, depths in KINDS.items():
        chunks = image_chunks(draw, 5, 4, draw.choice(depths), color, draw.randrange(2))
        chunks = [(name, content[:24] if name == b"PLTE" else content) for name, content in chunks]
        data = pack(chunks)
        for bit in range(8 * len(data)):
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            compare(bytes(broken), f"color {color}, bit {bit}")
        for place, (name, content) in enumerate(chunks):
            bits = [b for b in range(8 * len(content)) if name != b"IHDR" or b // 8 not in (0, 1, 4, 5)]  # no giants
            for bit in bits:
                broken = bytearray(content)
                broken[bit // 8] ^= 1 << bit % 8
                changed = [*chunks[:place], (name, bytes(broken)), *chunks[place + 1 :]]
                compare(pack(changed), f"color {color}, bit {bit} of {name!r}")
            count += len(bits)
        count += 8 * len(data)
    comparisons(count)


TEXTS: list[Chunk] = [
    (b"tEXt", b""),
    (b"tEXt", b"no end"),
    (b"tEXt", b"\0no key"),
    (b"tEXt", b"interlace\0yes"),
    (b"tEXt", b"interlace\0"),
    (b"tEXt", b"transparency\0yes"),
    (b"tEXt", b"bbox\0yes"),
    (b"tEXt", b"default_image\0yes"),
    (b"zTXt", b""),
    (b"zTXt", b"key\0"),
    (b"zTXt", b"key\0\0" + zlib.compress(b"text")),
    (b"zTXt", b"key\0\0" + zlib.compress(b"text")[:-3]),
    (b"zTXt", b"key\0\1" + zlib.compress(b"text")),
    (b"zTXt", b"key\0\0not zlib"),
    (b"zTXt", b"transparency\0\0" + zlib.compress(b"yes")),
    (b"zTXt", b"key\0\0" + zlib.compress(bytes((1 << 20) - 1))),
    (b"zTXt", b"key\0\0" + zlib.compress(bytes(1 << 20))),
    (b"zTXt", b"key\0\0" + zlib.compress(bytes(1 << 20))[:-4]),
    (b"zTXt", b"key\0\0" + zlib.compress(bytes((1 << 20) + 1))),
    (b"zTXt", b"key\0\0" + zlib.compress(bytes((1 << 20) + 1))[:-4]),
    (b"zTXt", b"key\0\0" + zlib.compress(bytes(20000)) + b"more"),
    (b"iTXt", b""),
    (b"iTXt", b"key\0"),
    (b"iTXt", b"key\0\0\0en\0key\0text"),
    (b"iTXt", b"key\0\0\0\xff\0key\0text"),
    (b"iTXt", b"key\0\1\0en\0key\0" + zlib.compress(b"text")),
    (b"iTXt", b"key\0\1\1en\0key\0" + zlib.compress(b"text")),
    (b"iTXt", b"key\0\1\0en\0key\0not zlib"),
    (b"iTXt", b"interlace\0\1\0en\0key\0" + zlib.compress(b"yes")),
    (b"iTXt", b"interlace\0\0\0en\0key\0\xed\xa0\x80"),
    (b"iTXt", b"transparency\0\0\0en\0key\0\xf4\x90\x80\x80"),
    (b"iTXt", b"transparency\0\0\0en\0key\0\xf4\x8f\x80\x80"),
    (b"iTXt", b"key\0\1\0en\0key\0" + zlib.compress(bytes(3 << 20))),
    (b"iCCP", b""),
    (b"iCCP", b"\0"),
    (b"iCCP", b"name"),
    (b"iCCP", b"name\0"),
    (b"iCCP", b"name\0\0"),
    (b"iCCP", b"name\0\1"),
    (b"iCCP", b"name\0\0" + zlib.compress(b"profile")),
    (b"iCCP", b"name\0\0" + zlib.compress(bytes(3 << 20))),
    (b"iCCP", b"name\0\0not zlib"),
    (b"gAMA", b"123"),
    (b"gAMA", b"1234"),
    (b"cHRM", bytes(31)),
    (b"cHRM", bytes(32)),
    (b"sRGB", b""),
    (b"sRGB", b"\7"),
    (b"pHYs", bytes(8)),
    (b"pHYs", bytes(9)),
    (b"tRNS", b""),
    (b"tRNS", b"\0"),
    (b"tRNS", bytes(5)),
    (b"tRNS", bytes(6)),
    (b"PLTE", bytes(7)),
    (b"eXIf", b"no exif"),
    (b"CgBI", bytes(4)),
    (b"ab_1", b"private"),
    (b"a-b1", b"no chunk"),
    (b"DDAT", b"data"),
    (b"IDAT", b""),
    (b"IEND", b""),
    (b"acTL", struct.pack(">II", 0, 0)),
    (b"acTL", struct.pack(">II", 1, 0)),
    (b"acTL", struct.pack(">II", 2, 0)),
    (b"acTL", bytes(7)),
    (b"fcTL", struct.pack(">IIIIIHHBB", 0, 6, 4, 0, 0, 1, 1, 0, 0)),
    (b"fcTL", struct.pack(">IIIIIHHBB", 0, 3, 2, 2, 1, 1, 1, 0, 0)),
    (b"fcTL", struct.pack(">IIIIIHHBB", 1, 3, 2, 2, 1, 1, 1, 1, 1)),
    (b"fcTL", struct.pack(">IIIIIHHBB", 0, 0, 0, 2, 1, 1, 1, 0, 0)),
    (b"fcTL", struct.pack(">IIIIIHHBB", 0, 7, 2, 0, 1, 1, 1, 0, 0)),
    (b"fcTL", bytes(25)),
    (b"fdAT", b"\0\0\0"),
    (b"fdAT", b"\0\0\0\1data"),
    (b"fdAT", b"\0\0\0\0"),
    (b"IHDR", bytes(12)),
    (b"IHDR", struct.pack(">IIBBBBB", 6, 4, 7, 2, 0, 0, 0)),
    (b"IHDR", struct.pack(">IIBBBBB", 6, 4, 8, 2, 1, 0, 0)),
    (b"IHDR", struct.pack(">IIBBBBB", 6, 4, 8, 2, 0, 1, 0)),
    (b"IHDR", struct.pack(">IIBBBBB", 6, 4, 8, 2, 0, 0, 9)),
    (b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0)),
]


def test_one_more_chunk_anywhere(comparisons: Any) -> None:
    draw = random.Random(10)
    count = 0
    for color, depths in KINDS.items():
        chunks = image_chunks(draw, 6, 4, depths[-1], color, 0)
        for place in range(len(chunks) + 1):
            for extra in TEXTS:
                compare(pack([*chunks[:place], extra, *chunks[place:]]), f"color {color}, {extra!r:.60} at {place}")
        count += (len(chunks) + 1) * len(TEXTS)
    comparisons(count)


def test_chunks_dealt_at_random(comparisons: Any) -> None:
    """Chunks left out, twice, in another order, cut short, with others among them."""
    draw = random.Random(11)
    for number in range(12000):
        depth, color = random_kind(draw)
        chunks = image_chunks(draw, 6, 4, depth, color, draw.randrange(2))
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(chunks) + 1)
            what = draw.randrange(5)
            if what < 2 or not chunks:
                chunks.insert(place, draw.choice(TEXTS))
            elif what == 2:
                chunks.insert(place, draw.choice(chunks))
            elif what == 3:
                del chunks[place - 1]
            else:
                name, content = chunks[place - 1]
                chunks[place - 1] = name, content[: draw.randint(0, len(content))]
        data = pack(chunks)
        compare(data if draw.random() < 0.7 else data[: draw.randint(0, len(data))], f"file {number}")
    comparisons(12000)


def test_several_headers_and_frames(comparisons: Any) -> None:
    """A frame that was checked against another header than the last must not reach over the image."""
    draw = random.Random(14)

    def extra() -> Chunk:
        size = draw.choice([6, 6, 3, 9, 1]), draw.choice([4, 4, 2, 7, 1])
        frame = draw.randint(0, 9), draw.randint(0, 7), draw.randrange(4), draw.randrange(4)
        return draw.choice(
            [
                header(*size, *random_kind(draw), draw.randrange(2)),
                (b"fcTL", struct.pack(">IIIIIHHBB", draw.randrange(2), *frame, 1, 1, 0, 0)),
                (b"acTL", struct.pack(">II", draw.randrange(3), 0)),
                (b"PLTE", draw.randbytes(draw.choice([3, 9, 700, 769, 771]))),
                (b"tRNS", draw.choice([bytes(6), b"\xff\0", b"\x80\1", bytes(3)])),
                (b"fdAT", struct.pack(">I", draw.randrange(3)) + zlib.compress(bytes(draw.randrange(60)))),
                draw.choice(TEXTS),
            ]
        )

    for number in range(8000):
        chunks = image_chunks(draw, 6, 4, *random_kind(draw), draw.randrange(2))
        for _ in range(draw.randint(1, 5)):
            chunks.insert(draw.randrange(len(chunks) + 1), extra())
        compare(pack(chunks), f"file {number}")
    comparisons(8000)


def test_animations(comparisons: Any) -> None:
    """The first frame, which may fill a part of the image only, or the default image."""
    draw = random.Random(12)
    for number in range(1500):
        depth, color = random_kind(draw)
        interlaced = draw.randrange(2)
        width, height = draw.randint(1, 10), draw.randint(1, 10)
        left, top = draw.randrange(width), draw.randrange(height)
        part = draw.randint(1, width - left), draw.randint(1, height - top)
        if draw.random() < 0.4:
            left, top, part = 0, 0, (width, height)
        control = (b"fcTL", struct.pack(">IIIIIHHBB", 0, *part, left, top, 1, 1, draw.randrange(3), draw.randrange(2)))
        data = zlib.compress(rows(draw, *part, depth, color, interlaced))
        chunks = [header(width, height, depth, color, interlaced), (b"PLTE", draw.randbytes(draw.randint(1, 768)))]
        chunks.append((b"acTL", struct.pack(">II", draw.choice([1, 2, 3]), 0)))
        if draw.random() < 0.2:
            whole = zlib.compress(rows(draw, width, height, depth, color, interlaced))
            chunks += [(b"IDAT", whole), control, (b"fdAT", struct.pack(">I", 1) + data)]
        else:
            name = draw.choice([b"IDAT", b"IDAT", b"fdAT"])
            chunks += [control, (name, data if name == b"IDAT" else struct.pack(">I", 1) + data)]
            following = 1 if name == b"IDAT" else 2
            more = struct.pack(">IIIIIHHBB", following, *part, left, top, 1, 1, 0, 0)
            chunks += [(b"fcTL", more), (b"fdAT", struct.pack(">I", following + 1) + data)]
        compare(pack([*chunks, (b"IEND", b"")]), f"animation {number}")
    comparisons(1500)


def test_large_rows_and_many_pieces(comparisons: Any) -> None:
    """Rows longer than the decoder's window, and pieces longer than Pillow's 64 KiB."""
    draw = random.Random(13)
    for width, height, depth, color in ((40000, 5, 16, 6), (300000, 3, 8, 0), (90000, 4, 8, 2), (500, 700, 8, 6)):
        for level in (0, 1):
            raw = rows(draw, width, height, depth, color, 0)
            data = zlib.compress(raw, level)
            for parts in ([data], [data[i : i + 5000] for i in range(0, len(data), 5000)]):
                file = [header(width, height, depth, color), *((b"IDAT", part) for part in parts), (b"IEND", b"")]
                assert compare(pack(file), f"{width} x {height}")
            for size in (len(data) // 2, len(data) - 4, len(data) - 1):
                compare(pack([header(width, height, depth, color), (b"IDAT", data[:size])]), f"{width} x {height} cut")
    comparisons(40)


def test_texts_beyond_the_limit(comparisons: Any) -> None:
    """64 MiB of text are let pass, one character more is refused; letters count, not their bytes."""
    megabyte = zlib.compress("é".encode() * (1 << 19))
    text = (b"iTXt", b"key\0\1\0en\0key\0" + megabyte)
    plain = (b"tEXt", b"key\0" + bytes((1 << 20) - 1))
    image = [(b"IDAT", zlib.compress(b"\0\1")), (b"IEND", b"")]
    for texts in ([text] * 129, [plain] * 64, [plain] * 65, [text] * 128 + [(b"tEXt", b"a\0b")]):
        compare(pack([header(1, 1, 8, 0), *texts, *image]), f"{len(texts)} texts")
    comparisons(4)


def test_claims_of_size() -> None:
    """A header's claim costs nothing: it is refused beyond the limit, and within it memory waits for data."""
    for width, height in ((50000, 50000), (0xFFFFFFFF, 1), (0x7FFFFFFF, 0x7FFFFFFF), (178956971, 1)):
        data = pack([header(width, height, 8, 2), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b"")])
        with pytest.raises(StokerError, match="max_pixels"):
            decode(data)
    data = pack([header(13000, 13000, 16, 6), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b"")])
    with pytest.raises(StokerError, match="PNG"):
        decode(data)
    small = pack(image_chunks(random.Random(1), 20, 10, 8, 2))
    with pytest.raises(StokerError, match="max_pixels"):
        decode(small, max_pixels=199)
    assert decode(small, max_pixels=200).shape == (10, 20, 3)
