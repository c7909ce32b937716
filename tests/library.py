# SPDX-License-Identifier: Apache-2.0
"""Datasets and loaders of the C library through ctypes, as include/stoker.h has them: to test the library itself."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from conftest import BUILD

OK, END = 0, 1
RAISE, SKIP, SUBSTITUTE = 0, 1, 2
PARTIAL, DROP, PAD = 0, 1, 2
MAX_TRANSFORMS = 32

_i32, _i64, _u64, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p


class Settings(ctypes.Structure):
    _fields_ = [
        ("ops", ctypes.c_char_p),
        ("batch", _i64),
        ("threads", _i32),
        ("shuffle", _i32),
        ("seed", _u64),
        ("first_epoch", _u64),
        ("epochs", _i64),
        ("last_batch", _i32),
        ("on_error", _i32),
        ("depth", _i32),
        ("stall_seconds", _i32),
        ("ring_bytes", _i64),
        ("keep_draws", _i32),
        ("reserved0", _i32),
        ("order", ctypes.POINTER(_i64)),
        ("order_count", _i64),
        ("reserved", _i64 * 8),
    ]


class Draw(ctypes.Structure):
    _fields_ = [("transform", _i32), ("kind", _i32), ("value", _i32 * 4)]


class CBatch(ctypes.Structure):
    _fields_ = [
        ("images", _pointer),
        ("labels", ctypes.POINTER(_i64)),
        ("samples", ctypes.POINTER(_i64)),
        ("count", _i64),
        ("valid", _i64),
        ("channels", _i32),
        ("height", _i32),
        ("width", _i32),
        ("dtype", _i32),
        ("layout", _i32),
        ("epoch", _u64),
        ("index", _i64),
        ("draws", ctypes.POINTER(Draw)),
        ("draw_counts", ctypes.POINTER(_i32)),
        ("draws_stride", _i32),
        ("reserved0", _i32),
        ("reserved", _i64 * 4),
    ]


class Stats(ctypes.Structure):
    _fields_ = [
        ("samples", _i64),
        ("batches", _i64),
        ("epochs", _i64),
        ("skipped", _i64),
        ("bytes", _i64),
        ("seconds", ctypes.c_double),
        ("first_batch_seconds", ctypes.c_double),
        ("stage_seconds", ctypes.c_double * 5),
        ("stage_bytes", _i64 * 5),
        ("ring_bytes", _i64),
        ("threads", _i32),
        ("depth", _i32),
        ("reserved", _i64 * 8),
    ]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(BUILD / "libstoker.so"))
    library.stoker_last_error.restype = ctypes.c_char_p
    library.stoker_loader_batches.restype = _i64
    library.stoker_dataset_size.restype = _i64
    library.stoker_dataset_where.restype = ctypes.c_size_t
    return library


library = _load()


class LibraryError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__((library.stoker_last_error() or b"").decode())
        self.status = status


def _check(status: int) -> None:
    if status < 0:
        raise LibraryError(status)


@dataclass
class Batch:
    """A copy of a batch. `draws`: for each sample a list of (transform, kind, values)."""

    images: np.ndarray
    labels: list[int]
    samples: list[int]
    valid: int
    epoch: int
    index: int
    draws: list[list[tuple[int, int, tuple[int, ...]]]] = field(default_factory=list)


class Dataset:
    def __init__(self, path: Path) -> None:
        self.handle = _pointer()
        _check(library.stoker_dataset_open(str(path).encode(), None, ctypes.byref(self.handle)))

    def __len__(self) -> int:
        return int(library.stoker_dataset_size(self.handle))

    def where(self, index: int) -> str:
        buffer = ctypes.create_string_buffer(4096)
        library.stoker_dataset_where(self.handle, _i64(index), buffer, ctypes.c_size_t(4096))
        return buffer.value.decode()

    def close(self) -> None:
        library.stoker_dataset_close(self.handle)
        self.handle = _pointer()


_DTYPES = {0: np.uint8, 1: np.float16, 2: np.uint16, 3: np.float32}


class Loader:
    def __init__(self, dataset: Dataset, ops: str = "", **settings: int) -> None:
        self.settings = Settings()
        library.stoker_loader_default_settings(ctypes.byref(self.settings))
        self.settings.ops = ops.encode()
        for name, value in settings.items():
            setattr(self.settings, name, value)
        self.dataset = dataset  # must outlive the loader
        self.handle = _pointer()
        _check(library.stoker_loader_open(dataset.handle, ctypes.byref(self.settings), ctypes.byref(self.handle)))

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        library.stoker_loader_close(self.handle)

    def __len__(self) -> int:
        return int(library.stoker_loader_batches(self.handle))

    def advance(self) -> bool:
        """The next batch, made and given back without a copy; False at the epoch's end."""
        batch = ctypes.POINTER(CBatch)()
        status = library.stoker_loader_next(self.handle, ctypes.byref(batch))
        _check(status)
        if status == OK:
            library.stoker_batch_release(batch)
        return bool(status == OK)

    def next(self) -> Batch | None:
        """A copy of the next batch; None at the epoch's end."""
        pointer = ctypes.POINTER(CBatch)()
        status = library.stoker_loader_next(self.handle, ctypes.byref(pointer))
        _check(status)
        if status == END:
            return None
        batch = pointer.contents
        n = batch.count
        shape = (n, batch.channels, batch.height, batch.width)
        if batch.layout == 1:
            shape = (n, batch.height, batch.width, batch.channels)
        dtype = np.dtype(_DTYPES[batch.dtype])
        data = ctypes.string_at(batch.images, int(np.prod(shape)) * dtype.itemsize)
        draws = []
        for i in range(n if batch.draws else 0):
            row = [batch.draws[i * batch.draws_stride + k] for k in range(batch.draw_counts[i])]
            draws.append([(d.transform, d.kind, tuple(d.value)) for d in row])
        result = Batch(
            images=np.frombuffer(data, dtype=dtype).reshape(shape),
            labels=batch.labels[:n],
            samples=batch.samples[:n],
            valid=batch.valid,
            epoch=batch.epoch,
            index=batch.index,
            draws=draws,
        )
        library.stoker_batch_release(pointer)
        return result

    def epoch(self) -> Iterator[Batch]:
        while (batch := self.next()) is not None:
            yield batch

    def seek(self, epoch: int) -> None:
        _check(library.stoker_loader_seek(self.handle, _u64(epoch)))

    def stats(self) -> Stats:
        stats = Stats()
        library.stoker_loader_stats(self.handle, ctypes.byref(stats))
        return stats

    def skipped(self) -> list[tuple[int, int, str]]:
        """(epoch, sample, reason) of what was skipped or replaced."""
        sample, epoch, reason = _i64(), _u64(), ctypes.create_string_buffer(1024)
        found = []
        while (
            library.stoker_loader_skipped(
                self.handle, _i64(len(found)), ctypes.byref(sample), ctypes.byref(epoch), reason, ctypes.c_size_t(1024)
            )
            == OK
        ):
            found.append((epoch.value, sample.value, reason.value.decode(errors="replace")))
        return found
