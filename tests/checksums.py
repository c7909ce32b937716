# SPDX-License-Identifier: Apache-2.0
"""XXH3 from libxxhash, for tests that make or read packs themselves."""

from __future__ import annotations

import ctypes
import ctypes.util

_library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_library.XXH3_64bits_withSeed.restype = ctypes.c_uint64


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_library.XXH3_128bits.restype = _Hash128


def xxh3_64(data: bytes, seed: int = 0) -> int:
    return int(_library.XXH3_64bits_withSeed(data, ctypes.c_size_t(len(data)), ctypes.c_uint64(seed)))


def xxh3_128(data: bytes) -> bytes:
    """Low half first, each half little-endian."""
    made = _library.XXH3_128bits(data, ctypes.c_size_t(len(data)))
    return int(made.low).to_bytes(8, "little") + int(made.high).to_bytes(8, "little")
