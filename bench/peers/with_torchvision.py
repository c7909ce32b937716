# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets and transforms on PIL images, under PyTorch's DataLoader."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torchvision
import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Sampler
from works import CIFAR_MEAN, CIFAR_STD, IMAGENET_MEAN, IMAGENET_STD, Work
from works import WORKS as ALL

WORKS = set(ALL)
IMAGENET, CIFAR = T.Normalize(IMAGENET_MEAN, IMAGENET_STD), T.Normalize(CIFAR_MEAN, CIFAR_STD)
TRANSFORMS = {
    "train": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), IMAGENET]),
    "validate": T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), IMAGENET]),
    "cifar-f32": T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor(), CIFAR]),
    "cifar-u8": T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.PILToTensor()]),
}


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


class Cifar(Dataset):
    """CIFAR-10's binary files in memory, handed out as torchvision's CIFAR10 does."""

    def __init__(self, data: Path, transform: object) -> None:
        self.records = np.concatenate([np.fromfile(f, np.uint8) for f in sorted(data.glob("data_batch_*.bin"))])
        self.records = self.records.reshape(-1, 3073)
        self.images = np.ascontiguousarray(self.records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[object, int]:
        return self.transform(Image.fromarray(self.images[index])), int(self.records[index, 0])  # type: ignore[operator]


def VERSION() -> str:
    return f"torch {torch.__version__}, torchvision {torchvision.__version__}"


def loaded(dataset: Dataset, batch: int, workers: int) -> Iterator[np.ndarray]:
    torch.set_num_threads(1)
    sampler = Endless(len(dataset))  # type: ignore[arg-type]
    for images, _ in DataLoader(dataset, batch, sampler=sampler, num_workers=workers):
        yield images.numpy()


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    transform = TRANSFORMS[work.key]
    if work.dataset == "photos":
        return loaded(torchvision.datasets.ImageFolder(str(data), transform), work.batch, workers)
    return loaded(Cifar(data, transform), work.batch, workers)


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    dataset = torchvision.datasets.ImageFolder(str(data), T.Compose([T.Resize(256), T.CenterCrop(224)]))
    return np.stack([np.asarray(dataset[i][0]) for i in range(count)])
