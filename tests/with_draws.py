# SPDX-License-Identifier: Apache-2.0
"""torchvision's own transforms with Stoker's random choices in place of theirs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import stoker
import torchvision.transforms as v1
from torchvision.transforms import v2

FLIPS = (v1.RandomHorizontalFlip, v1.RandomVerticalFlip, v2.RandomHorizontalFlip, v2.RandomVerticalFlip)


def with_draws(transform: Any, draws: Iterator[stoker.Draw]) -> Any:
    """The torchvision transform, its random choices replaced by draws; they are taken in order."""
    if isinstance(transform, (v1.Compose, v2.Compose)):
        return type(transform)([with_draws(step, draws) for step in transform.transforms])
    made = copy.copy(transform)  # of a module: its attributes are shared, but those set here
    made.__dict__ = dict(transform.__dict__)
    if isinstance(transform, FLIPS):
        draw = next(draws)
        assert draw.kind == "flip"
        made.p = float(draw.value[0])
    elif isinstance(transform, (v1.RandomCrop, v1.RandomResizedCrop)):
        value = next(draws).value
        made.get_params = lambda *_: value
    elif isinstance(transform, (v2.RandomCrop, v2.RandomResizedCrop)):
        top, left, height, width = next(draws).value

        def make_params(inputs: list[Any]) -> dict[str, Any]:
            chosen = transform.make_params(inputs)
            return {**chosen, "top": top, "left": left, "height": height, "width": width}

        made.make_params = make_params
    return made
