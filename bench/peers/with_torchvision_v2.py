# SPDX-License-Identifier: Apache-2.0
"""torchvision.transforms.v2 on tensors, which decode_image makes, under PyTorch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torchvision.transforms.v2 as T
import with_torchvision
from torch.utils.data import Dataset
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from works import CIFAR_MEAN, CIFAR_STD, IMAGENET_MEAN, IMAGENET_STD, Work
from works import WORKS as ALL

WORKS = set(ALL)
VERSION = with_torchvision.VERSION
FLOAT = T.ToDtype(torch.float32, scale=True)
IMAGENET, CIFAR = [FLOAT, T.Normalize(IMAGENET_MEAN, IMAGENET_STD)], [FLOAT, T.Normalize(CIFAR_MEAN, CIFAR_STD)]
TRANSFORMS = {
    "train": T.Compose([T.RandomResizedCrop(224, antialias=True), T.RandomHorizontalFlip(), *IMAGENET]),
    "validate": T.Compose([T.Resize(256, antialias=True), T.CenterCrop(224), *IMAGENET]),
    "cifar-f32": T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), *CIFAR]),
    "cifar-u8": T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip()]),
}


def read(path: str) -> torch.Tensor:
    return decode_image(path, mode=ImageReadMode.RGB)


class Cifar(Dataset):
    def __init__(self, data: Path, transform: object) -> None:
        files = [np.fromfile(f, np.uint8) for f in sorted(data.glob("data_batch_*.bin"))]
        self.records = torch.from_numpy(np.concatenate(files).reshape(-1, 3073))
        self.transform = transform

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[object, int]:
        record = self.records[index]
        return self.transform(record[1:].reshape(3, 32, 32)), int(record[0])  # type: ignore[operator]


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    transform = TRANSFORMS[work.key]
    photos = work.dataset == "photos"
    dataset = ImageFolder(str(data), transform, loader=read) if photos else Cifar(data, transform)
    return with_torchvision.loaded(dataset, work.batch, workers)


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    transform = T.Compose([T.Resize(256, antialias=True), T.CenterCrop(224)])
    dataset = ImageFolder(str(data), transform, loader=read)
    return np.stack([dataset[i][0].permute(1, 2, 0).numpy() for i in range(count)])
