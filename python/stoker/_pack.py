# SPDX-License-Identifier: Apache-2.0
"""Packs: one file that holds a whole dataset in a form that is fast to read, with the same pixels."""

from __future__ import annotations

import os
from typing import Literal, NamedTuple

from . import _stoker
from ._core import SettingError
from ._dataset import Dataset

PackMode = Literal["auto", "dct", "raw", "keep", "jpeg"]
MODES = {"auto": 0, "dct": 1, "raw": 2, "keep": 3, "jpeg": 4}


class PackReport(NamedTuple):
    """What `pack` did.

    bytes_in: of the samples in the source; bytes_out: the pack's size; dct, jpeg, raw, original: samples by what holds
    them; resumed: samples that an interrupted run had packed before; odd: (where, reason) of samples that cannot be
    decoded, which are kept as they are and refused when they are read, as from their files.
    """

    samples: int
    bytes_in: int
    bytes_out: int
    dct: int
    jpeg: int
    raw: int
    original: int
    resumed: int
    odd: list[tuple[str, str]]


class UnpackReport(NamedTuple):
    """What `unpack` wrote: files, those that are the source's byte for byte, those with the same pixels, bytes."""

    samples: int
    identical: int
    pixels: int
    bytes: int


def pack(
    dataset: str | os.PathLike[str] | Dataset,
    path: str | os.PathLike[str],
    mode: PackMode = "auto",
    *,
    overwrite: bool = False,
) -> PackReport:
    """Packs a dataset (a path: all of its parts) into the file `path`, with all cores. No pixel changes.

    :param mode: "dct" (JPEG coefficients in a form for vector units), "jpeg" (JPEG files with restart markers),
        "raw" (decoded pixels), "keep" (the files' own bytes), or "auto": dct for image files, raw
        for raw samples such as CIFAR's.
    :param overwrite: a file that is there is replaced at the end; else it is an error.

    An interrupted run leaves ``path + ".partial"``; the same call again goes on from it.
    """
    if mode not in MODES:
        raise SettingError(f"unknown mode {mode!r}: {', '.join(MODES)}")
    source = None if isinstance(dataset, Dataset) else os.fspath(dataset)
    opened = dataset if isinstance(dataset, Dataset) else Dataset(dataset, "all")
    return PackReport(*_stoker.pack(opened._handle, source, os.fspath(path), MODES[mode], overwrite))


def verify(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Checks every checksum of a pack, with all cores. Returns (where, reason) of each damaged sample: none is sound.

    :raises DataError: for a pack that cannot be opened, or damage outside its samples.
    """
    return _stoker.verify(os.fspath(path))


def unpack(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> UnpackReport:
    """Gives a pack's dataset back as files in `folder`, which must be new or empty."""
    return UnpackReport(*_stoker.unpack(os.fspath(path), os.fspath(folder)))
