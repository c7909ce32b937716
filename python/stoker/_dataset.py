# SPDX-License-Identifier: Apache-2.0
"""Datasets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _stoker
from ._core import SettingError, address_of, whole_numbers

Split = Literal["default", "train", "test", "all"]
SPLITS = {"default": 0, "train": 1, "test": 2, "all": 3}
Index = Literal["auto", "off", "keep", "rebuild"]
INDEXES = {"auto": 0, "off": 1, "keep": 2, "rebuild": 3}
VERDICTS = ("sound", "suspect", "odd")


class Check(NamedTuple):
    """What a full decode of a sample told: "sound", "suspect" (fed, but damaged or of a rare kind) or "odd"."""

    verdict: str
    width: int
    height: int
    bytes: int
    format: str
    reason: str


def _split_number(split: str) -> int:
    if split not in SPLITS:
        raise SettingError(f"unknown split {split!r}: {', '.join(SPLITS)}")
    return SPLITS[split]


def _index_number(index: str) -> int:
    if index not in INDEXES:
        raise SettingError(f"unknown index {index!r}: {', '.join(INDEXES)}")
    return INDEXES[index]


class Dataset:
    """What lies at `path`, told by looking at it: an ImageFolder, CIFAR-10 or CIFAR-100 (binary or pickled),
    MNIST-like idx files, a pack.

    :param split: "train", "test", "all", or "default": train where the dataset tells parts apart and has that part,
        else all.
    :param coarse_labels: CIFAR-100: the 20 coarse labels instead of the 100 fine ones.
    :param exif_orientation: turn images upright by their EXIF tag; torchvision does not, and so the default does not.
    :param index: whether the list of an ImageFolder's files is kept in the user's cache folder for the next time:
        "auto" (from 5,000 files on, or as the environment variable STOKER_INDEX says), "off", "keep" (however few),
        "rebuild".
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        split: Split = "default",
        *,
        coarse_labels: bool = False,
        exif_orientation: bool = False,
        max_pixels: int | None = None,
        max_scans: int | None = None,
        index: Index = "auto",
    ) -> None:
        self._handle = _stoker.open_dataset(
            os.fspath(path),
            _split_number(split),
            coarse_labels,
            exif_orientation,
            max_pixels or 0,
            max_scans or 0,
            _index_number(index),
        )
        self._classes: list[str | None] | None = None

    @classmethod
    def _wrap(cls, handle: _stoker.Dataset, classes: list[str | None] | None = None) -> Dataset:
        self = cls.__new__(cls)
        self._handle = handle
        self._classes = classes
        return self

    @classmethod
    def from_arrays(cls, images: ArrayLike, labels: ArrayLike | None = None) -> Dataset:
        """Samples already in memory, without copying them: uint8, N x H x W x C (C 1 or 3) or N x H x W, C
        contiguous; labels N integers or None for all 0. numpy arrays, or anything that numpy takes (a torch CPU
        tensor). Do not change them meanwhile."""
        array = np.asarray(images)
        if array.dtype != np.uint8 or array.ndim not in (3, 4):
            raise SettingError(f"images are uint8, N x H x W (x C), not {array.dtype} of shape {array.shape}")
        if not array.flags.c_contiguous:
            raise SettingError("images must be C contiguous: pass np.ascontiguousarray(images)")
        count, height, width = array.shape[:3]
        channels = array.shape[3] if array.ndim == 4 else 1
        numbers: NDArray[np.int64] | None = None
        if labels is not None:
            given = np.asarray(labels)
            if given.dtype.kind not in "iub":
                raise SettingError(f"labels are integers, not {given.dtype}")
            numbers = np.ascontiguousarray(given, dtype=np.int64)
            if numbers.shape != (count,):
                raise SettingError(f"{count} images and labels of shape {numbers.shape}")
        handle = _stoker.arrays(
            address_of(array),
            count,
            height,
            width,
            channels,
            address_of(numbers) if numbers is not None else 0,
            (array, numbers),
        )
        return cls._wrap(handle)

    def subset(self, indices: Sequence[int] | NDArray[Any]) -> Dataset:
        """The samples `indices`, in that order; repeats are allowed."""
        numbers = whole_numbers("indices", indices)
        return Dataset._wrap(_stoker.subset(self._handle, address_of(numbers), len(numbers)))

    @staticmethod
    def concat(parts: Sequence[Dataset]) -> Dataset:
        """The datasets one after another."""
        return Dataset._wrap(_stoker.concat(tuple(part._handle for part in parts)))

    def __len__(self) -> int:
        return self._handle.size()

    def __repr__(self) -> str:
        return f"<stoker.Dataset: {self.format}, {len(self):,} samples, {len(self.classes)} classes>"

    @property
    def format(self) -> str:
        """ "imagefolder", "cifar10", "cifar100", "mnist", "pack" or "arrays"."""
        return self._handle.format()

    @property
    def classes(self) -> list[str]:
        """Class names by label; str(label) for a class without a name; empty if the classes are unknown."""
        if self._classes is None:
            self._classes = self._handle.classes()
        return [name if name is not None else str(label) for label, name in enumerate(self._classes)]

    @property
    def channels(self) -> int:
        """3, or 1 for gray datasets."""
        return self._handle.channels()

    @property
    def sample_size(self) -> tuple[int, int] | None:
        """(height, width) that all samples share, or None where they may differ."""
        size = self._handle.sample_size()
        return size if size != (0, 0) else None

    @property
    def labels(self) -> NDArray[np.int64]:
        """The labels of all samples."""
        out = np.empty(len(self), dtype=np.int64)
        self._handle.labels(address_of(out))
        return out

    def split_size(self, split: Split) -> int:
        """Samples of a part, of those that were opened."""
        return self._handle.split_size(_split_number(split))

    def _checked(self, index: int) -> int:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"sample {index} of {size}")
        return index % size

    def label(self, index: int) -> int:
        """The label of a sample."""
        return self._handle.label(self._checked(index))

    def where(self, index: int) -> str:
        """Where a sample lies: a path, or a file and record."""
        return self._handle.where(self._checked(index))

    def decode(self, index: int) -> NDArray[np.uint8]:
        """A sample's pixels: uint8, height x width x channels."""
        return np.from_dlpack(self._handle.decode(self._checked(index))[0])

    def bytes(self, index: int) -> bytes:
        """A sample's image file. :raises UnsupportedError: for datasets of raw pixels."""
        return self._handle.bytes(self._checked(index))

    def check(self, index: int) -> Check:
        """Decodes a sample whole and says whether it is sound."""
        verdict, width, height, size, format_name, reason = self._handle.check(self._checked(index))
        return Check(VERDICTS[verdict], width, height, size, format_name, reason)
