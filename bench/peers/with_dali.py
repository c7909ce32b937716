# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI's CPU operators, as its ImageNet examples put them together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import nvidia.dali
from nvidia.dali import fn, pipeline_def, types
from works import IMAGENET_MEAN, IMAGENET_STD, Work, photo_files

WORKS = {"train", "validate"}
MEAN, STD = [255 * value for value in IMAGENET_MEAN], [255 * value for value in IMAGENET_STD]


def VERSION() -> str:
    return f"DALI {nvidia.dali.__version__}"


@pipeline_def
def train(folder: str):  # noqa: ANN201
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=512, name="reader")
    images = fn.decoders.image_random_crop(
        files, device="cpu", output_type=types.RGB, random_aspect_ratio=[3 / 4, 4 / 3], random_area=[0.08, 1.0]
    )
    images = fn.resize(images, resize_x=224, resize_y=224, interp_type=types.INTERP_LINEAR)
    mirror = fn.random.coin_flip(probability=0.5)
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, mirror=mirror)
    return images, labels


@pipeline_def
def validate(folder: str):  # noqa: ANN201
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=512, name="reader")
    images = fn.decoders.image(files, device="cpu", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256, interp_type=types.INTERP_LINEAR)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(224, 224), mean=MEAN, std=STD
    )
    return images, labels


@pipeline_def
def as_bytes(files: list[str]):  # noqa: ANN201
    encoded, labels = fn.readers.file(files=files, name="reader")
    images = fn.decoders.image(encoded, device="cpu", output_type=types.RGB, adjust_orientation=False)
    images = fn.resize(images, resize_shorter=256, interp_type=types.INTERP_LINEAR)
    return fn.crop(images, crop=(224, 224)), labels


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    make = train if work.key == "train" else validate
    pipe = make(str(data), batch_size=work.batch, num_threads=workers, device_id=None, prefetch_queue_depth=2, seed=1)
    pipe.build()
    while True:
        images, _ = pipe.run()
        yield np.asarray(images.as_tensor())


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    files = [str(file) for file in photo_files(data)[:count]]
    pipe = as_bytes(files, batch_size=count, num_threads=2, device_id=None)
    pipe.build()
    images, _ = pipe.run()
    return np.array(images.as_tensor())
