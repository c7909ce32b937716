# SPDX-License-Identifier: Apache-2.0
"""Transforms as text, their random draws, and both applied to one image."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _stoker
from ._core import Output, SettingError, address_of, chosen_output, hand_over, unsigned

DTYPES = ("u8", "f16", "bf16", "f32")
LAYOUTS = ("nchw", "nhwc")


class Draw(NamedTuple):
    """One random choice of one sample.

    `transform` is its place in the spec, from 0. `kind` is "crop", with value (top, left, height, width) in pixels of
    the image as it came to that transform, after the transform's own padding; or "flip", with value[0] 1 if flipped.
    """

    transform: int
    kind: str
    value: tuple[int, int, int, int]

    @classmethod
    def from_raw(cls, raw: tuple[int, int, int, int, int, int]) -> Draw:
        return cls(raw[0], "crop" if raw[1] == 0 else "flip", raw[2:])

    def raw(self) -> tuple[int, int, int, int, int, int]:
        value = tuple(int(v) for v in self.value)
        return (int(self.transform), 0 if self.kind == "crop" else 1, *(value + (0,) * (4 - len(value))))  # type: ignore[return-value]


class Spec:
    """A list of transforms; docs/transforms.md holds the grammar.

    :raises SettingError: naming what is wrong, with the place marked.
    """

    def __init__(self, text: str = "") -> None:
        self._handle = _stoker.parse_spec(text)

    @property
    def text(self) -> str:
        """The spec in canonical form: every argument named and given."""
        return self._handle.text()

    @property
    def dtype(self) -> str:
        """Of the result: "u8", "f16", "bf16" or "f32"."""
        return DTYPES[self._handle.output()[0]]

    @property
    def layout(self) -> str:
        """Of the result: "nchw" or "nhwc"."""
        return LAYOUTS[self._handle.output()[1]]

    def __repr__(self) -> str:
        return f"stoker.Spec({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type[Spec], tuple[str]]:
        return (Spec, (self.text,))

    def draw(self, seed: int, epoch: int, sample: int, width: int, height: int) -> list[Draw]:
        """The draws of one sample whose image is `width` x `height`: a pure function of the arguments."""
        whole = (unsigned("seed", seed), unsigned("epoch", epoch), index(sample), index(width), index(height))
        return [Draw.from_raw(raw) for raw in self._handle.draw(*whole)]

    def apply(self, image: NDArray[np.uint8], draws: Sequence[Draw] = (), output: Output = "numpy") -> Any:
        """Applies the spec to one image (uint8, height x width x 3, height x width x 1, or height x width).

        :return: channels x height x width (nchw) or height x width x channels (nhwc), in the spec's dtype.
        """
        image = np.ascontiguousarray(image)
        if image.dtype != np.uint8 or image.ndim not in (2, 3):
            raise SettingError(
                f"an image is uint8, height x width (x channels), not {image.dtype} of shape {image.shape}"
            )
        height, width = image.shape[:2]
        channels = image.shape[2] if image.ndim == 3 else 1
        raw = [draw.raw() for draw in draws]
        return hand_over(self._handle.apply(address_of(image), width, height, channels, raw), chosen_output(output))

    def apply_encoded(
        self, data: bytes, draws: Sequence[Draw] = (), exif_orientation: bool = False, output: Output = "numpy"
    ) -> Any:
        """The same straight from an image file's bytes; decodes only the region that the spec needs."""
        raw = [draw.raw() for draw in draws]
        return hand_over(
            self._handle.apply_encoded(bytes(memoryview(data)), raw, exif_orientation), chosen_output(output)
        )
