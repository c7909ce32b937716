# SPDX-License-Identifier: Apache-2.0
"""FFCV over files of its own format, written before. JPEG mode re-encodes the photos at quality 90, its default."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.rgb_image import (
    CenterCropRGBImageDecoder,
    RandomResizedCropRGBImageDecoder,
    SimpleRGBImageDecoder,
)
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, RandomTranslate, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image
from works import CIFAR_MEAN, CIFAR_STD, COPIES, IMAGENET_MEAN, IMAGENET_STD, Work, photo_files
from works import WORKS as ALL

WORKS = set(ALL)  # CIFAR in raw mode only
MODE = "jpg"  # with_ffcv_raw.py sets it to "raw"


def VERSION() -> str:
    return f"FFCV {version('ffcv')}"


class Photos:
    def __init__(self, data: Path) -> None:
        self.files = COPIES * photo_files(data)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.open(self.files[index]).convert("RGB"), 0


class Cifar:
    def __init__(self, data: Path) -> None:
        records = np.concatenate([np.fromfile(file, np.uint8) for file in sorted(data.glob("data_batch_*.bin"))])
        self.records = records.reshape(-1, 3073)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        record = self.records[index]
        return Image.fromarray(record[1:].reshape(3, 32, 32).transpose(1, 2, 0)), int(record[0])


def file_of(dataset: str, scratch: Path) -> Path:
    return scratch / (f"photos-{MODE}.beton" if dataset == "photos" else "cifar.beton")


def prepare(work: Work, data: Path, scratch: Path) -> None:
    path = file_of(work.dataset, scratch)
    if path.exists():
        return
    fields = {"image": RGBImageField(write_mode=MODE), "label": IntField()}
    unfinished = path.with_suffix(".new")
    writer = DatasetWriter(str(unfinished), fields, num_workers=1)
    writer.from_indexed_dataset(Photos(data) if work.dataset == "photos" else Cifar(data))
    unfinished.rename(path)


def steps(work: Work) -> list[object]:
    def normalize(mean: tuple[float, ...], std: tuple[float, ...]) -> NormalizeImage:
        return NormalizeImage(255 * np.array(mean), 255 * np.array(std), np.float32)

    end = [ToTensor(), ToTorchImage(channels_last=False)]
    if work.key == "train":
        decoder = RandomResizedCropRGBImageDecoder((224, 224))
        return [decoder, RandomHorizontalFlip(), normalize(IMAGENET_MEAN, IMAGENET_STD), *end]
    if work.key == "validate":
        return [CenterCropRGBImageDecoder((224, 224), ratio=224 / 256), normalize(IMAGENET_MEAN, IMAGENET_STD), *end]
    augment = [SimpleRGBImageDecoder(), RandomHorizontalFlip(), RandomTranslate(padding=4, fill=(0, 0, 0))]
    return augment + ([normalize(CIFAR_MEAN, CIFAR_STD)] if work.key == "cifar-f32" else []) + end


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    loader = Loader(
        str(file_of(work.dataset, scratch)),
        batch_size=work.batch,
        num_workers=workers,
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=True,
        pipelines={"image": steps(work), "label": None},
    )
    while True:
        for (images,) in loader:
            yield images.numpy() if isinstance(images, torch.Tensor) else images


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    decoder = CenterCropRGBImageDecoder((224, 224), ratio=224 / 256)
    loader = Loader(
        str(file_of("photos", scratch)),
        batch_size=count,
        num_workers=1,
        order=OrderOption.SEQUENTIAL,
        pipelines={"image": [decoder], "label": None},
    )
    (images,) = next(iter(loader))
    return np.array(images)
