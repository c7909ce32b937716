# SPDX-License-Identifier: Apache-2.0
"""Grain: a MapDataset with Pillow's decoding and resampling, in worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import grain.python as grain
import numpy as np
from crops import SCALE, SHIFT, random_crop, shorter_side
from PIL import Image
from works import Work, photo_files

WORKS = {"train", "validate"}


def VERSION() -> str:
    return f"Grain {version('grain')}"


def tensor(image: Image.Image) -> np.ndarray:
    return (np.asarray(image) * SCALE + SHIFT).transpose(2, 0, 1)


def train(file: str, rng: np.random.Generator) -> np.ndarray:
    image = Image.open(file).convert("RGB")
    left, top, width, height = random_crop(image.width, image.height)
    image = image.resize((224, 224), Image.Resampling.BILINEAR, (left, top, left + width, top + height))
    if rng.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return tensor(image)


def middle(file: str) -> Image.Image:
    image = Image.open(file).convert("RGB")
    image = image.resize(shorter_side(image.width, image.height), Image.Resampling.BILINEAR)
    left, top = round((image.width - 224) / 2), round((image.height - 224) / 2)
    return image.crop((left, top, left + 224, top + 224))


def validate(file: str) -> np.ndarray:
    return tensor(middle(file))


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    files = [str(file) for file in photo_files(data)]
    dataset = grain.MapDataset.source(files).seed(1).shuffle().repeat(None)
    dataset = dataset.random_map(train) if work.key == "train" else dataset.map(validate)
    read = grain.ReadOptions(num_threads=2, prefetch_buffer_size=128)
    batched = dataset.to_iter_dataset(read).batch(work.batch)
    if workers > 0:
        batched = batched.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    yield from batched


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    return np.stack([np.asarray(middle(str(file))) for file in photo_files(data)[:count]])
