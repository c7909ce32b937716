# SPDX-License-Identifier: Apache-2.0
"""tf.data, as TensorFlow's ImageNet recipes have it: only the crop is decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from works import CIFAR_MEAN, CIFAR_STD, IMAGENET_MEAN, IMAGENET_STD, Work, photo_files
from works import WORKS as ALL

WORKS = set(ALL)


def VERSION() -> str:
    return f"TensorFlow {tf.__version__}"


def normalized(image: tf.Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> tf.Tensor:
    """0..255, height x width x 3, to normalised, 3 x height x width."""
    image = (tf.cast(image, tf.float32) - [255 * value for value in mean]) / [255 * value for value in std]
    return tf.transpose(image, (2, 0, 1))


def train(file: tf.Tensor) -> tf.Tensor:
    data = tf.io.read_file(file)
    shape = tf.io.extract_jpeg_shape(data)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros((1, 0, 4)),
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.resize(tf.image.decode_and_crop_jpeg(data, window, channels=3), (224, 224))
    return normalized(tf.image.random_flip_left_right(image), IMAGENET_MEAN, IMAGENET_STD)


def middle(file: tf.Tensor) -> tf.Tensor:
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    shape = tf.cast(tf.shape(image)[:2], tf.float64)
    size = tf.cast(tf.math.floor(256 * shape / tf.reduce_min(shape)), tf.int32)
    image = tf.image.resize(image, size)
    return tf.image.crop_to_bounding_box(image, (size[0] - 224) // 2, (size[1] - 224) // 2, 224, 224)


def validate(file: tf.Tensor) -> tf.Tensor:
    return normalized(middle(file), IMAGENET_MEAN, IMAGENET_STD)


def cifar(image: tf.Tensor) -> tf.Tensor:
    image = tf.image.random_crop(tf.pad(image, ((4, 4), (4, 4), (0, 0))), (32, 32, 3))
    return tf.image.random_flip_left_right(image)


def cifar_f32(image: tf.Tensor) -> tf.Tensor:
    return normalized(cifar(image), CIFAR_MEAN, CIFAR_STD)


def cifar_u8(image: tf.Tensor) -> tf.Tensor:
    return tf.transpose(cifar(image), (2, 0, 1))


STEPS = {"train": train, "validate": validate, "cifar-f32": cifar_f32, "cifar-u8": cifar_u8}


def source(work: Work, data: Path) -> tuple[tf.data.Dataset, int]:
    if work.dataset == "photos":
        files = [str(file) for file in photo_files(data)]
        return tf.data.Dataset.from_tensor_slices(files), len(files)
    records = np.concatenate([np.fromfile(file, np.uint8) for file in sorted(data.glob("data_batch_*.bin"))])
    images = records.reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return tf.data.Dataset.from_tensor_slices(np.ascontiguousarray(images)), len(images)


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    dataset, count = source(work, data)
    dataset = dataset.shuffle(count).repeat().map(STEPS[work.key], num_parallel_calls=workers, deterministic=False)
    dataset = dataset.batch(work.batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    yield from dataset.with_options(options).as_numpy_iterator()


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    files = [str(file) for file in photo_files(data)[:count]]
    return np.stack([np.rint(middle(file).numpy()).clip(0, 255).astype(np.uint8) for file in files])
