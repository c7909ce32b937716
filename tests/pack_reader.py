# SPDX-License-Identifier: Apache-2.0
"""A reader of packs written from docs/pack-format.md alone. Slow and plain; nothing of the library is in it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from checksums import xxh3_64, xxh3_128

ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, (i // 8 if (i // 8 + i % 8) % 2 else i % 8)))
ORIGINAL, DCT, PLANAR, INTERLEAVED = 0, 1, 3, 4


@dataclass
class Sample:
    label: int
    path: bytes
    encoding: int
    width: int
    height: int
    channels: int
    payload: bytes
    source_size: int
    source_hash: bytes


@dataclass
class Pack:
    train: int
    test: int
    channels: int
    classes: list[bytes]
    origin: bytes
    samples: list[Sample]


@dataclass
class Component:
    h: int
    v: int
    quant: list[int]  # in zigzag order
    across: int
    blocks: list[list[int]]  # row by row; each 64 values in zigzag order


@dataclass
class Coefficients:
    width: int
    height: int
    orientation: int
    components: list[Component]


def read(path: Path) -> Pack:
    data = path.read_bytes()
    header = data[:4096]
    assert header[:8] == b"STOKRPK\n"
    version, size, count, train, test = struct.unpack_from("<I4xQQQQ", header, 8)
    classes, channels = struct.unpack_from("<II", header, 48)
    index, names, names_size, names_check = struct.unpack_from("<QQQQ", header, 64)
    assert version == 1 and size == len(data)
    assert struct.unpack_from("<Q", header, 4088)[0] == xxh3_64(header[:4088])
    assert xxh3_64(data[names : names + names_size]) == names_check and names + names_size == size
    assert xxh3_128(data[index : index + 48 * count]) == header[96:112]
    texts = data[names : names + names_size].split(b"\0")[:classes]
    samples, at = [], 4096
    for number in range(count):
        record = data[index + 48 * number :][:48]
        sample, at = read_record(data, at, number, record)
        samples.append(sample)
    assert at == index and index + 48 * count == names
    return Pack(train, test, channels, texts, header[192:224].rstrip(b"\0"), samples)


def read_record(data: bytes, at: int, number: int, record: bytes) -> tuple[Sample, int]:
    offset, size, check, label, width, height, encoding, channels, own = struct.unpack("<QQQqIIBB2xI", record)
    assert own == xxh3_64(record[:44], number) & 0xFFFFFFFF
    head = data[at : at + 128]
    magic, its_number, path_size, recipe_size, tail_check, source_size = struct.unpack_from("<4s4xQIIQQ", head)
    assert magic == b"SREC" and its_number == number and at % 64 == 0 and offset == at + 128
    assert head[64:112] == record
    assert struct.unpack_from("<Q", head, 120)[0] == xxh3_64(head[:120])
    payload = data[offset : offset + size]
    tail = data[offset + size :][: path_size + recipe_size]
    assert xxh3_64(payload) == check and xxh3_64(tail) == tail_check
    end = offset + size + len(tail)
    padded = -(-end // 64) * 64
    assert not any(data[end:padded])
    sample = Sample(label, tail[:path_size], encoding, width, height, channels, payload, source_size, head[40:56])
    return sample, padded


def bits(number: int, at: int, count: int) -> int:
    return number >> at & ((1 << count) - 1)


def read_group(group: bytes) -> list[list[int]]:
    head = int.from_bytes(group[:3], "little")
    least, dc_width, last = bits(head, 0, 12) - 2048, bits(head, 12, 4), bits(head, 16, 6)
    assert head >> 22 == 0 and dc_width <= 12
    at, widths = 3, [0] * 64
    if last > 0:
        count = (last + 4) // 4
        steps = int.from_bytes(group[3 : 3 + count], "little")
        at += count
        widths[1] = bits(steps, 0, 4)
        for k in range(2, last + 1):
            widths[k] = widths[k - 1] + bits(steps, 2 * k, 2) - 2
        assert all(0 <= width <= 10 for width in widths)
    blocks = [[0] * 64 for _ in range(8)]
    values = int.from_bytes(group[at : at + dc_width], "little")
    at += dc_width
    for b in range(8):
        blocks[b][0] = least + bits(values, b * dc_width, dc_width)
    for k in range(1, last + 1):
        values = int.from_bytes(group[at : at + widths[k]], "little")
        at += widths[k]
        for b in range(8):
            blocks[b][k] = bits(values, b * widths[k], widths[k])
    signs, place = int.from_bytes(group[at:], "little"), 0
    for k in range(1, last + 1):
        for block in blocks:
            if block[k] != 0:
                if bits(signs, place, 1):
                    block[k] = -block[k]
                place += 1
    assert at + (place + 7) // 8 == len(group)
    return blocks


def read_dct(payload: bytes) -> Coefficients:
    assert payload[:4] == b"SDCT" and payload[4:6] == b"\1\0"
    count, h, v = payload[6], payload[7] >> 4, payload[7] & 15
    width, height = struct.unpack_from("<II", payload, 8)
    mcus_across, mcus_down = -(-width // (8 * h)), -(-height // (8 * v))
    table = 32 + 64 * count
    shapes = [(h, v) if c == 0 else (1, 1) for c in range(count)]
    rows = [-(-mcus_down * own_v // 2) for _, own_v in shapes]
    begin = table + 8 * sum(rows)
    seed = xxh3_64(payload[:24] + bytes(8) + payload[32:table])
    assert struct.unpack_from("<Q", payload, 24)[0] == xxh3_64(payload[table:begin], seed)
    components = []
    for c, (own_h, own_v) in enumerate(shapes):
        across, down = mcus_across * own_h, mcus_down * own_v
        groups = -(-across // 4)
        blocks: list[list[int]] = [[]] * (across * down)
        for row in range(rows[c]):
            end, check = struct.unpack_from("<II", payload, table)
            table += 8
            data = payload[begin:end]
            begin = end
            assert xxh3_64(data) & 0xFFFFFFFF == check
            at = 2 * groups
            for g in range(groups):
                size = struct.unpack_from("<H", data, 2 * g)[0]
                for b, block in enumerate(read_group(data[at : at + size])):
                    x, y = 4 * g + b % 4, 2 * row + b // 4
                    if x < across and y < down:
                        blocks[y * across + x] = block
                at += size
            assert at == len(data)
        quant = list(payload[32 + 64 * c :][:64])
        components.append(Component(own_h, own_v, quant, across, blocks))
    assert begin == len(payload)
    return Coefficients(width, height, payload[16], components)


# ---------------------------------------------------------------------------------------- a JPEG file of these ------


class _Writer:
    """Bits, the highest first, with a zero byte behind each 255 (ITU-T T.81, F.1.2.3)."""

    def __init__(self) -> None:
        self.out, self.word, self.count = bytearray(), 0, 0

    def put(self, value: int, count: int) -> None:
        self.word = self.word << count | value
        self.count += count
        while self.count >= 8:
            self.count -= 8
            byte = self.word >> self.count & 255
            self.out.append(byte)
            if byte == 255:
                self.out.append(0)
        self.word &= (1 << self.count) - 1

    def end(self) -> bytes:
        if self.count:
            self.put((1 << (8 - self.count)) - 1, 8 - self.count)
        return bytes(self.out)


def _segment(marker: int, body: bytes) -> bytes:
    return bytes([255, marker]) + (len(body) + 2).to_bytes(2, "big") + body


def _value(out: _Writer, value: int, size: int) -> None:
    out.put(value if value >= 0 else value + (1 << size) - 1, size)


def to_jpeg(image: Coefficients) -> bytes:
    """A baseline file whose Huffman codes are as long as one another: DC symbols of 4 bits, AC of 8."""
    symbols = [run << 4 | size for run in range(16) for size in range(1, 11)] + [0x00, 0xF0]
    code = {symbol: i for i, symbol in enumerate(symbols)}
    count = len(image.components)
    out = b"\xff\xd8" + _segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    for c, component in enumerate(image.components):
        out += _segment(0xDB, bytes([c, *component.quant]))
    frame = b"\x08" + image.height.to_bytes(2, "big") + image.width.to_bytes(2, "big") + bytes([count])
    scan = bytes([count])
    for c, component in enumerate(image.components):
        frame += bytes([c + 1, component.h << 4 | component.v, c])
        scan += bytes([c + 1, 0])
    out += _segment(0xC0, frame)
    out += _segment(0xC4, b"\x00" + bytes([0, 0, 0, 12]) + bytes(12) + bytes(range(12)))
    out += _segment(0xC4, b"\x10" + bytes(7) + bytes([len(symbols)]) + bytes(8) + bytes(symbols))
    out += _segment(0xDA, scan + b"\x00\x3f\x00")
    writer, before = _Writer(), [0] * count
    first = image.components[0]
    mcus_across, mcus_down = first.across // first.h, len(first.blocks) // first.across // first.v
    for mcu in range(mcus_across * mcus_down):
        for c, part in enumerate(image.components):
            for y in range(part.v):
                for x in range(part.h):
                    row, column = mcu // mcus_across * part.v + y, mcu % mcus_across * part.h + x
                    block = part.blocks[row * part.across + column]
                    size = abs(block[0] - before[c]).bit_length()
                    writer.put(size, 4)
                    _value(writer, block[0] - before[c], size)
                    before[c] = block[0]
                    run = 0
                    for value in block[1:]:
                        if value == 0:
                            run += 1
                            continue
                        for _ in range(run // 16):
                            writer.put(code[0xF0], 8)
                        size = abs(value).bit_length()
                        writer.put(code[run % 16 << 4 | size], 8)
                        _value(writer, value, size)
                        run = 0
                    if run:
                        writer.put(code[0x00], 8)
    return out + writer.end() + b"\xff\xd9"
