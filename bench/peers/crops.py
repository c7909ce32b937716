# SPDX-License-Identifier: Apache-2.0
"""What those peers share that leave the augmentation or the end of it to the user."""

from __future__ import annotations

import math
import random

import numpy as np
from works import IMAGENET_MEAN, IMAGENET_STD

SCALE = np.float32(1) / (np.float32(255) * np.array(IMAGENET_STD, np.float32))
SHIFT = -np.array(IMAGENET_MEAN, np.float32) / np.array(IMAGENET_STD, np.float32)


def random_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """left, top, width, height: torchvision's RandomResizedCrop with its defaults."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w = min(width, round(height * 4 / 3))
    h = min(height, round(width * 4 / 3))
    return (width - w) // 2, (height - h) // 2, w, h


def shorter_side(width: int, height: int, size: int = 256) -> tuple[int, int]:
    """What torchvision's Resize(size) makes of a size."""
    short, long = min(width, height), max(width, height)
    other = int(size * long / short)
    return (size, other) if width <= height else (other, size)


def normalized(images: np.ndarray) -> np.ndarray:
    """uint8, n x height x width x 3, to normalised float32, n x 3 x height x width."""
    count, height, width, channels = images.shape
    out = np.empty((count, channels, height, width), np.float32)
    for c in range(channels):
        np.multiply(images[..., c], SCALE[c], out=out[:, c])
        out[:, c] += SHIFT[c]
    return out


def unnormalized(images: np.ndarray) -> np.ndarray:
    """The way back, rounded."""
    mean, std = (np.array(value, np.float32).reshape(3, 1, 1) for value in (IMAGENET_MEAN, IMAGENET_STD))
    bytes_ = np.rint((images * std + mean) * 255).clip(0, 255).astype(np.uint8)
    return np.ascontiguousarray(bytes_.transpose(0, 2, 3, 1))
