# SPDX-License-Identifier: Apache-2.0
"""The spec functions of the public header, called through ctypes: the transforms' tests need no Python package."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from conftest import BUILD
from numpy.typing import NDArray

CROP, FLIP = 0, 1
NCHW, NHWC = 0, 1
DTYPES = ("u8", "f16", "bf16", "f32")
LAYOUTS = ("nchw", "nhwc")
MAX_TRANSFORMS = 32


class SpecError(Exception):
    """stoker_last_error of a call that failed."""


@dataclass(frozen=True)
class Draw:
    transform: int
    kind: int
    value: tuple[int, int, int, int]


class _Draw(ctypes.Structure):
    _fields_ = [("transform", ctypes.c_int32), ("kind", ctypes.c_int32), ("value", ctypes.c_int32 * 4)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("channels", ctypes.c_int32),
        ("height", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("dtype", ctypes.c_int),
        ("layout", ctypes.c_int),
    ]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(BUILD / "libstoker.so"), mode=os.RTLD_LAZY)
    library.stoker_last_error.restype = ctypes.c_char_p
    library.stoker_cpu.restype = ctypes.c_char_p
    library.stoker_spec_text.restype = ctypes.c_char_p
    library.stoker_spec_text.argtypes = [ctypes.c_void_p]
    library.stoker_spec_free.argtypes = [ctypes.c_void_p]
    library.stoker_spec_dtype.argtypes = [ctypes.c_void_p]
    library.stoker_spec_layout.argtypes = [ctypes.c_void_p]
    library.stoker_free.argtypes = [ctypes.c_void_p]
    library.stoker_spec_draw.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_int32,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    library.stoker_spec_apply.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int32,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_void_p,
    ]
    library.stoker_spec_apply_encoded.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_void_p,
    ]
    return library


LIBRARY = _load()


def cpu() -> str:
    return str(LIBRARY.stoker_cpu().decode())


def _check(status: int) -> None:
    if status != 0:
        raise SpecError(LIBRARY.stoker_last_error().decode())


def _pack(draws: list[Draw]) -> Any:
    packed = (_Draw * max(len(draws), 1))()
    for place, draw in zip(packed, draws, strict=False):
        place.transform, place.kind, place.value = draw.transform, draw.kind, (ctypes.c_int32 * 4)(*draw.value)
    return packed


class Spec:
    def __init__(self, text: str) -> None:
        self._handle = ctypes.c_void_p()
        _check(LIBRARY.stoker_spec_parse(text.encode(), ctypes.byref(self._handle)))

    def __del__(self) -> None:
        LIBRARY.stoker_spec_free(self._handle)

    @property
    def text(self) -> str:
        return str(LIBRARY.stoker_spec_text(self._handle).decode())

    @property
    def dtype(self) -> str:
        return DTYPES[LIBRARY.stoker_spec_dtype(self._handle)]

    @property
    def layout(self) -> str:
        return LAYOUTS[LIBRARY.stoker_spec_layout(self._handle)]

    def draw(self, seed: int, epoch: int, sample: int, width: int, height: int) -> list[Draw]:
        draws = (_Draw * MAX_TRANSFORMS)()
        count = ctypes.c_int32()
        _check(LIBRARY.stoker_spec_draw(self._handle, seed, epoch, sample, width, height, draws, ctypes.byref(count)))
        return [Draw(draw.transform, draw.kind, tuple(draw.value)) for draw in draws[: count.value]]

    def apply(self, pixels: NDArray[np.uint8], draws: list[Draw]) -> NDArray[Any]:
        """The tensor; 16-bit floats as their bits (uint16)."""
        pixels = np.ascontiguousarray(pixels)
        height, width = pixels.shape[:2]
        channels = pixels.shape[2] if pixels.ndim == 3 else 1
        tensor = _Tensor()
        _check(
            LIBRARY.stoker_spec_apply(
                self._handle,
                pixels.ctypes.data,
                width,
                height,
                channels,
                _pack(draws),
                len(draws),
                ctypes.byref(tensor),
            )
        )
        return self._take(tensor)

    def apply_encoded(self, data: bytes, draws: list[Draw]) -> NDArray[Any]:
        tensor = _Tensor()
        _check(
            LIBRARY.stoker_spec_apply_encoded(
                self._handle, data, len(data), None, _pack(draws), len(draws), ctypes.byref(tensor)
            )
        )
        return self._take(tensor)

    @staticmethod
    def _take(tensor: _Tensor) -> NDArray[Any]:
        dtype = np.dtype((np.uint8, np.uint16, np.uint16, np.float32)[tensor.dtype])
        shape = (tensor.channels, tensor.height, tensor.width)
        if tensor.layout == NHWC:
            shape = (tensor.height, tensor.width, tensor.channels)
        size = int(np.prod(shape)) * dtype.itemsize
        taken = np.frombuffer(ctypes.string_at(tensor.data, size), dtype).reshape(shape)
        LIBRARY.stoker_free(tensor.data)
        return taken
