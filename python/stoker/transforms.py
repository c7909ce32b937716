# SPDX-License-Identifier: Apache-2.0
"""The transforms of a spec as objects, with torchvision's names, arguments and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


def _value(value: Any) -> str:
    """An argument as a spec writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return "(" + ",".join(_value(item) for item in value) + ")"
    if isinstance(value, float):
        return repr(value)
    return str(value)


class Transform:
    """One transform of a spec; its text is `spec`."""

    name: ClassVar[str]

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    @property
    def spec(self) -> str:
        """As a spec writes it."""
        if not self.arguments:
            return self.name
        return f"{self.name}({','.join(f'{name}={_value(value)}' for name, value in self.arguments.items())})"

    def __repr__(self) -> str:
        return f"stoker.{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.arguments.items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and other.spec == self.spec

    def __hash__(self) -> int:
        return hash(self.spec)


Size = int | Sequence[int]


class Resize(Transform):
    """To (height, width), or its shorter side to one number and at most `max_size` for the longer."""

    name = "resize"

    def __init__(self, size: Size, interpolation: str = "bilinear", max_size: int | None = None) -> None:
        super().__init__(size=size, interpolation=interpolation, max_size=max_size)


class CenterCrop(Transform):
    """The middle, padded with 0 where the image is smaller."""

    name = "center_crop"

    def __init__(self, size: Size) -> None:
        super().__init__(size=size)


class RandomCrop(Transform):
    """A part of the given size at a random place."""

    name = "random_crop"

    def __init__(
        self,
        size: Size,
        padding: Size | None = None,
        pad_if_needed: bool = False,
        fill: Size = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__(size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode)


class Pad(Transform):
    """Pixels around: one number, (left/right, top/bottom), or (left, top, right, bottom)."""

    name = "pad"

    def __init__(self, padding: Size, fill: Size = 0, padding_mode: str = "constant") -> None:
        super().__init__(padding=padding, fill=fill, padding_mode=padding_mode)


class RandomResizedCrop(Transform):
    """A random part of `scale` of the area and an aspect ratio within `ratio`, resized."""

    name = "random_resized_crop"

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: str = "bilinear",
    ) -> None:
        super().__init__(
            size=size, scale=tuple(map(float, scale)), ratio=tuple(map(float, ratio)), interpolation=interpolation
        )


class RandomHorizontalFlip(Transform):
    """Left and right exchanged with probability p."""

    name = "random_horizontal_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=float(p))


class RandomVerticalFlip(Transform):
    """Top and bottom exchanged with probability p."""

    name = "random_vertical_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=float(p))


class Grayscale(Transform):
    """Pillow's luma, in 1 or 3 channels."""

    name = "grayscale"

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=num_output_channels)


class ToTensor(Transform):
    """0..255 to float32 0..1, channels first: v / 255; with `reciprocal` v * (1 / 255), as torchvision's v2.ToDtype
    computes, which differs in the last bit of many levels."""

    name = "to_tensor"

    def __init__(self, reciprocal: bool = False) -> None:
        super().__init__(**({"reciprocal": True} if reciprocal else {}))


class Normalize(Transform):
    """(x - mean) / std a channel; implies ToTensor. `mean` may be the name of a preset, such as "imagenet"."""

    name = "normalize"

    def __init__(self, mean: str | Sequence[float], std: Sequence[float] | None = None) -> None:
        if isinstance(mean, str):
            super().__init__(mean=mean)
        else:
            super().__init__(mean=[float(m) for m in mean], std=None if std is None else [float(s) for s in std])


class To(Transform):
    """The result's dtype ("u8", "f16", "bf16", "f32") and layout ("nchw", "nhwc")."""

    name = "to"

    def __init__(self, dtype: str, layout: str = "nchw") -> None:
        super().__init__(dtype=dtype, layout=layout)
