# SPDX-License-Identifier: Apache-2.0
"""Random specs, and the same done by torchvision on PIL images with given draws: what the transforms are held to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torchvision.transforms.functional as F
from numpy.typing import NDArray
from PIL import Image
from spec_by_ctypes import Draw
from torchvision.transforms import InterpolationMode

FILTERS = {mode.value: mode for mode in InterpolationMode if mode is not InterpolationMode.NEAREST_EXACT}
MODES = ("constant", "edge", "reflect", "symmetric")
NORMALS = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "mnist": ((0.1307,), (0.3081,)),
    "fashion_mnist": ((0.2860,), (0.3530,)),
}
MOST_PIXELS = 400_000  # of an image on the way, so that tests end

Step = Callable[[Any, Iterator[Draw]], Any]


@dataclass
class Transform:
    """One transform: its text in a spec, and torchvision's doing of it, which takes a draw where it is random."""

    text: str
    step: Step


def plain(pixels: NDArray[np.uint8]) -> Image.Image:
    """An L or RGB image."""
    return Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)


def tuple_text(value: Any) -> str:
    return str(value).replace(" ", "")


def resize(size: int | tuple[int, int], interpolation: str = "bilinear", max_size: int | None = None) -> Transform:
    sizes = [size] if isinstance(size, int) else list(size)
    text = f"resize({tuple_text(size)},interpolation={interpolation}"
    text += f",max_size={max_size})" if max_size is not None else ")"
    return Transform(text, lambda image, _: F.resize(image, sizes, FILTERS[interpolation], max_size))


def center_crop(size: int | tuple[int, int]) -> Transform:
    both = [size, size] if isinstance(size, int) else list(size)
    return Transform(f"center_crop({tuple_text(size)})", lambda image, _: F.center_crop(image, both))


def pad(padding: int | tuple[int, ...], fill: int | tuple[int, ...] = 0, mode: str = "constant") -> Transform:
    sides = list(padding) if isinstance(padding, tuple) else padding
    return Transform(
        f"pad({tuple_text(padding)},fill={tuple_text(fill)},padding_mode={mode})",
        lambda image, _: F.pad(image, sides, fill, mode),
    )


def random_crop(
    size: tuple[int, int],
    padding: int | tuple[int, ...] | None = None,
    pad_if_needed: bool = False,
    fill: int | tuple[int, ...] = 0,
    mode: str = "constant",
) -> Transform:
    def step(image: Any, draws: Iterator[Draw]) -> Any:
        top, left, height, width = next(draws).value
        if padding is not None:
            image = F.pad(image, list(padding) if isinstance(padding, tuple) else padding, fill, mode)
        if pad_if_needed and image.width < size[1]:
            image = F.pad(image, [size[1] - image.width, 0], fill, mode)
        if pad_if_needed and image.height < size[0]:
            image = F.pad(image, [0, size[0] - image.height], fill, mode)
        assert 0 <= top <= image.height - height and 0 <= left <= image.width - width
        assert (height, width) == size
        return F.crop(image, top, left, height, width)

    text = f"random_crop({tuple_text(size)},padding={'none' if padding is None else tuple_text(padding)}"
    text += f",pad_if_needed={str(pad_if_needed).lower()},fill={tuple_text(fill)},padding_mode={mode})"
    return Transform(text, step)


def random_resized_crop(
    size: tuple[int, int],
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    interpolation: str = "bilinear",
) -> Transform:
    def step(image: Any, draws: Iterator[Draw]) -> Any:
        top, left, height, width = next(draws).value
        assert 0 <= top <= image.height - height and 0 <= left <= image.width - width
        return F.resized_crop(image, top, left, height, width, list(size), FILTERS[interpolation])

    return Transform(
        f"random_resized_crop({tuple_text(size)},scale={tuple_text(scale)},ratio={tuple_text(ratio)}"
        f",interpolation={interpolation})",
        step,
    )


def flip(horizontal: bool, p: float = 0.5) -> Transform:
    def step(image: Any, draws: Iterator[Draw]) -> Any:
        if next(draws).value[0] == 0:
            return image
        return F.hflip(image) if horizontal else F.vflip(image)

    return Transform(f"random_{'horizontal' if horizontal else 'vertical'}_flip({p})", step)


def grayscale(channels: int) -> Transform:
    return Transform(f"grayscale({channels})", lambda image, _: F.to_grayscale(image, channels))


def to_tensor() -> Transform:
    return Transform("to_tensor", lambda image, _: F.to_tensor(image))


def as_tensor(image: Any) -> torch.Tensor:
    return image if isinstance(image, torch.Tensor) else F.to_tensor(image)


def normalize(mean: tuple[float, ...], std: tuple[float, ...], text: str | None = None) -> Transform:
    one = len(mean) == 1
    text = text or (f"{mean[0]!r},{std[0]!r}" if one else f"{tuple_text(mean)},{tuple_text(std)}")
    return Transform(f"normalize({text})", lambda image, _: F.normalize(as_tensor(image), list(mean), list(std)))


def preset(name: str) -> Transform:
    return normalize(*NORMALS[name], name)


def to(dtype: str, layout: str) -> Transform:
    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

    def step(image: Any, _: Iterator[Draw]) -> Any:
        tensor = F.pil_to_tensor(image) if dtype == "u8" else as_tensor(image).to(kinds[dtype])
        return tensor.permute(1, 2, 0) if layout == "nhwc" else tensor

    return Transform(f"to({dtype},{layout})", step)


def replay(transforms: list[Transform], image: Image.Image, draws: list[Draw]) -> NDArray[Any]:
    """What torchvision gives; 16-bit floats as their bits, and an image left an image as height × width × channels."""
    left = iter(draws)
    result: Any = image
    for transform in transforms:
        result = transform.step(result, left)
    assert next(left, None) is None, "draws are left over"
    if isinstance(result, torch.Tensor):
        result = result.contiguous()
        if result.dtype in (torch.float16, torch.bfloat16):
            return result.view(torch.int16).numpy().view(np.uint16)
        return result.numpy()
    array = np.asarray(result)
    return array if array.ndim == 3 else array[..., None]


def text_of(transforms: list[Transform]) -> str:
    return " ".join(transform.text for transform in transforms)


class Dice:
    """Random images and transforms from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)

    def side(self, most: int = 300) -> int:
        few = self.random.choice([1, 2, 3, 7, 32])
        return self.random.choice([few, self.random.randint(1, 60), self.random.randint(1, most)])

    def image(self, width: int | None = None, height: int | None = None, gray: bool | None = None) -> NDArray[np.uint8]:
        width, height = width or self.side(), height or self.side()
        gray = self.random.random() < 0.25 if gray is None else gray
        return self.numpy.integers(0, 256, (height, width, 1 if gray else 3), dtype=np.uint8)

    def filter(self) -> str:
        return self.random.choice(list(FILTERS))

    def fill(self, channels: int) -> int | tuple[int, ...]:
        one = self.random.choice([0, 0, self.random.randint(0, 255)])
        colour = tuple(self.random.randint(0, 255) for _ in range(3))
        return self.random.choice([one, colour]) if channels == 3 else one

    def padding(self) -> int | tuple[int, ...]:
        def one() -> int:
            return self.random.choice([0, 1, 4, self.random.randint(0, 30)])

        return self.random.choice([one(), (one(), one()), (one(), one(), one(), one())])

    def ratio(self) -> tuple[float, float]:
        low = self.random.uniform(0.2, 1.5)
        return self.random.choice([(3 / 4, 4 / 3), (low, low * self.random.uniform(1.0, 3.0))])

    def scale(self) -> tuple[float, float]:
        low = self.random.uniform(0.0, 1.0)
        return self.random.choice([(0.08, 1.0), (low, self.random.uniform(low, 1.0)), (0.9, 1.5)])

    def geometry(self, width: int, height: int, channels: int) -> Transform:
        """A transform of pixels that an image of this size can take."""
        size = (self.side(), self.side())
        kind = self.random.randrange(9)
        if kind == 0:
            return resize(size, self.filter())
        if kind == 1:
            shorter = self.side(120)
            longest = self.random.choice([None, shorter + self.random.randint(1, 40)])
            new_longer = min(shorter * max(width, height) / min(width, height), longest or 1e9)
            new_shorter = new_longer * min(width, height) / max(width, height)
            if new_shorter > 1.1 and new_longer * shorter < MOST_PIXELS:
                return resize(shorter, self.filter(), longest)
            return resize(size, self.filter())
        if kind == 2:
            return center_crop(self.random.choice([size, self.side()]))
        if kind == 3:
            return pad(self.padding(), self.fill(channels), self.random.choice(MODES))
        if kind == 4:
            inside = (self.random.randint(1, height), self.random.randint(1, width))
            return random_crop(inside)
        if kind == 5:
            return random_crop(
                size,
                self.random.choice([None, self.padding()]),
                pad_if_needed=True,
                fill=self.fill(channels),
                mode=self.random.choice(MODES),
            )
        if kind == 6:
            return random_resized_crop(size, self.scale(), self.ratio(), self.filter())
        if kind == 7:
            return flip(self.random.random() < 0.5, self.random.choice([0.0, 0.5, 1.0]))
        return grayscale(self.random.choice([1, 3]))

    def numbers(self, channels: int) -> Transform:
        """A normalisation that an image of so many channels can take."""
        count = channels if self.random.random() < 0.8 else 1
        names = [name for name, (mean, _) in NORMALS.items() if len(mean) in (1, channels)]
        if self.random.random() < 0.5:
            return preset(self.random.choice(names))
        mean = tuple(self.random.uniform(-1, 1) for _ in range(count))
        std = tuple(self.random.choice([-1, 1, 1, 1]) * self.random.uniform(0.01, 2) for _ in range(count))
        return normalize(mean, std)
