# SPDX-License-Identifier: Apache-2.0
"""How throughput is measured, for the benchmark and the demo alike.

Both sides run over the same data on the same cores, one after the other. A batch counts when the loop has read a byte
of every page of it. The first batches are not timed: processes and threads are starting then.
"""

from __future__ import annotations

import ctypes
import gzip
import random
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import stoker
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Sampler

PAGE = 4096


class RawImages(Dataset):
    """CIFAR (binary layout) or idx files, in memory and handed out as torchvision does: PIL image, transform, label."""

    def __init__(self, folder: Path, train: bool = True, transform: object = None) -> None:
        self.transform = transform
        cifar = sorted(folder.glob("data_batch_*.bin" if train else "test_batch.bin"))
        if cifar:
            records = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in cifar])
            self.labels = records[:, 0].astype(np.int64)
            self.images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        else:
            name = "train" if train else "t10k"
            images = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())
            labels = gzip.decompress((folder / f"{name}-labels-idx1-ubyte.gz").read_bytes())
            self.images = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
            self.labels = np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[object, int]:
        image: object = Image.fromarray(self.images[index])
        if self.transform is not None:
            image = self.transform(image)  # type: ignore[operator]
        return image, int(self.labels[index])


class Endless(Sampler[int]):
    """Epoch after epoch of random orders without a gap, so that DataLoader's workers are never started anew."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.count))
        while True:
            random.shuffle(order)
            yield from order

    def __len__(self) -> int:
        return 1 << 40


def torch_batches(dataset: Dataset, batch: int, workers: int) -> Iterator[torch.Tensor]:
    sampler = Endless(len(dataset))  # type: ignore[arg-type]
    for images, _ in DataLoader(dataset, batch, sampler=sampler, num_workers=workers):
        yield images


def stoker_batches(dataset: object, ops: str, batch: int, threads: int = 0) -> Iterator[torch.Tensor]:
    with stoker.Loader(dataset, ops, batch=batch, threads=threads) as loader:
        while True:
            for images, _ in loader:
                yield torch.from_dlpack(images)


def touch(images: torch.Tensor) -> int:
    """Reads a byte of every page."""
    return int(images.detach().view(-1).view(torch.uint8)[::PAGE].sum(dtype=torch.int64))


def rate(batches: Iterable[torch.Tensor], seconds: float, warm: int = 4) -> float:
    """Images a second, over `seconds` after the first `warm` batches."""
    images = 0
    start = time.perf_counter()
    for number, batch in enumerate(batches):
        touch(batch)
        if number < warm:
            start = time.perf_counter()
            continue
        images += len(batch)
        if time.perf_counter() - start >= seconds:
            break
    taken = time.perf_counter() - start
    if hasattr(batches, "close"):
        batches.close()  # ends the workers before the other side runs
    return images / taken


def memset_bandwidth(threads: int, seconds: float = 0.5) -> float:
    """Bytes a second that memset writes, `threads` at once, each over its own 64 MB."""
    size = 64 << 20
    done = [0] * threads

    def work(place: int) -> None:
        buffer = ctypes.create_string_buffer(size)
        while time.perf_counter() < end:
            ctypes.memset(buffer, done[place] & 255, size)  # without the interpreter's lock
            done[place] += 1

    start = time.perf_counter()
    end = start + seconds
    team = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    return sum(done) * size / (time.perf_counter() - start)
