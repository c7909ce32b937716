# SPDX-License-Identifier: Apache-2.0
"""Errors, single images, and how memory of the library becomes arrays."""

from __future__ import annotations

import sys
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _stoker

Output = Literal["auto", "torch", "numpy", "dlpack"]


class StokerError(RuntimeError):
    """Any failure of the library. The text is one line that names the file, the sample and the reason."""

    status: str = ""


class SettingError(StokerError, ValueError):
    """A wrong argument, spec or setting."""


class ReadError(StokerError, OSError):
    """The system refused: no such file, no permission, a full disk."""


class DataError(StokerError, ValueError):
    """Broken data: a truncated image, a partial record, a label out of range."""


class UnsupportedError(StokerError, NotImplementedError):
    """Sound data of a kind that Stoker does not read; the text names the kind."""


class OutOfMemory(StokerError, MemoryError):
    """An allocation failed."""


class LimitError(StokerError, ValueError):
    """A named limit was exceeded; the text says which setting raises it."""


class ForkError(StokerError):
    """The loader cannot do this now: it was opened before fork(), all its epochs are over, or it is in use."""


class StallError(StokerError, TimeoutError):
    """No batch came for `stall_seconds`; the text names the blocked stage."""


# Numbers of stoker_status in stoker.h.
_ERRORS: dict[int, type[StokerError]] = {
    -1: SettingError,
    -2: ReadError,
    -3: DataError,
    -4: UnsupportedError,
    -5: OutOfMemory,
    -6: LimitError,
    -7: ForkError,
    -8: StallError,
}


def _make_error(status: int, name: str, message: str) -> StokerError:
    error = _ERRORS.get(status, StokerError)(message)
    error.status = name
    return error


_stoker.set_error_maker(_make_error)


def version() -> str:
    """The library's version, such as "0.1.0"."""
    return _stoker.version()


def cpu() -> str:
    """The instruction set in use: "scalar", "avx2", "avx512" or "neon"; the variable STOKER_CPU forces one."""
    return _stoker.cpu()


def usable_cores() -> int:
    """Cores that this process may use: the least of its affinity mask and its cgroup's CPU quota, at least 1."""
    return _stoker.usable_cores()[0]


def decode(
    data: bytes,
    region: tuple[int, int, int, int] | None = None,
    exif_orientation: bool = False,
    max_pixels: int | None = None,
    max_scans: int | None = None,
) -> NDArray[np.uint8]:
    """Decodes an image file held in memory, by its content, to what ``PIL.Image.open(f).convert("RGB")`` gives.

    :param region: (left, top, width, height) in pixels; only this part is decoded and returned.
    :param exif_orientation: turn the image upright as ``PIL.ImageOps.exif_transpose`` does.
    :param max_pixels: refuse more than this; by default 178,956,970, where Pillow raises.
    :param max_scans: refuse progressive JPEG files with more scans than this; by default 500.
    :return: uint8, height x width x 3, 0..255.
    :raises DataError: where Pillow raises. :raises UnsupportedError: naming the format. :raises LimitError:
    """
    part = None
    if region is not None:
        part = tuple(index(number) for number in region)
        if len(part) != 4:
            raise SettingError(f"a region is (left, top, width, height), not {len(part)} numbers")
    tensor, _, _ = _stoker.decode(bytes(memoryview(data)), part, exif_orientation, max_pixels or 0, max_scans or 0)
    return np.from_dlpack(tensor)


def address_of(array: NDArray[Any]) -> int:
    """Where a contiguous array's elements lie; the caller keeps the array."""
    return int(array.__array_interface__["data"][0])


def whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    """A row of integers, contiguous; a mask of booleans or fractions are refused rather than taken for indices."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size > 0):
        raise SettingError(f"{name} are a row of integers, not {given.dtype} of shape {given.shape}")
    return np.ascontiguousarray(given, dtype=np.int64)


def unsigned(name: str, value: int) -> int:
    """A seed or an epoch, 64 bits without sign."""
    number = index(value)
    if not 0 <= number < 2**64:
        raise SettingError(f"{name} is {number}; 0 to 2**64 - 1 is possible")
    return number


def chosen_output(output: Output) -> Literal["torch", "numpy", "dlpack"]:
    """What "auto" means now: torch where the program has imported it, else numpy."""
    if output not in ("auto", "torch", "numpy", "dlpack"):
        raise SettingError(f"unknown output {output!r}: auto, torch, numpy or dlpack")
    if output != "auto":
        return output
    return "torch" if "torch" in sys.modules else "numpy"


def hand_over(tensor: _stoker.Tensor, output: Literal["torch", "numpy", "dlpack"]) -> Any:
    """The same memory as a torch tensor or a numpy array, without a copy."""
    if output == "dlpack":
        return tensor
    if output == "torch":
        import torch

        return torch.from_dlpack(tensor)
    if tensor.dtype == "bfloat16":
        raise SettingError('numpy has no bfloat16: ask for output="torch" or "dlpack"')
    return np.from_dlpack(tensor)
