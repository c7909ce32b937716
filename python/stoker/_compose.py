# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms, v1 and v2, taken over as a spec; what cannot be taken over is named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import transforms as own
from ._core import SettingError
from ._spec import Spec


class CannotTakeOver(SettingError):
    """A transform that a spec cannot express; the text names it."""


def spec_text(ops: Any) -> str:
    """Whatever a Loader takes as `ops`, as a spec's text."""
    if ops is None:
        return ""
    if isinstance(ops, str):
        return ops
    if isinstance(ops, Spec):
        return ops.text
    if isinstance(ops, own.Transform):
        return ops.spec
    if isinstance(ops, (list, tuple)):
        return " ".join(spec_text(op) for op in ops)
    return from_torchvision(ops)


def from_torchvision(transform: Any) -> str:
    """The spec of a torchvision transform or Compose (v1 or v2).

    :raises CannotTakeOver: naming the transform that has no equal here, and its place.
    """
    taken = split_torchvision(transform)
    if taken.rest:
        raise CannotTakeOver(f"cannot take over {taken.reason}")
    return taken.text


class Taken(NamedTuple):
    """The longest beginning of a list of transforms that a spec can express, and what is left."""

    specs: list[str]
    state: str  # what comes out of the beginning: "pil", "uint8" (a tensor of bytes) or "float"
    rest: list[Any]
    reason: str  # why the first of the rest cannot be taken over

    @property
    def text(self) -> str:
        if self.state == "uint8" and not any(spec.startswith("to(") for spec in self.specs):
            return " ".join([*self.specs, "to(u8,nchw)"])
        return " ".join(self.specs)


def split_torchvision(transform: Any) -> Taken:
    """Takes over as much of `transform` as a spec can express."""
    steps = _flatten(transform)
    specs: list[str] = []
    state = "pil"
    for place, step in enumerate(steps):
        try:
            _check_state(step, state)
            text = _convert(step)
            Spec(" ".join([*specs, text]))
        except CannotTakeOver as error:
            return Taken(specs, state, steps[place:], f"{error} (position {place})")
        except SettingError as error:
            return Taken(specs, state, steps[place:], f"{_name(step)} (position {place}): {error}")
        if text:
            specs.append(text)
        state = _state_after(step, state)
    return Taken(specs, state, [], "")


# On tensors torchvision's arithmetic is another than Pillow's for these.
_PIL_ONLY = ("Resize", "RandomResizedCrop", "Grayscale")


def _check_state(step: Any, state: str) -> None:
    name = _name(step)
    if state != "pil" and name in _PIL_ONLY:
        raise CannotTakeOver(
            f"{name} after the image has become a tensor, where torchvision resizes by other arithmetic"
        )
    if name == "ToDtype" and state != "uint8":
        raise CannotTakeOver("ToDtype without ToImage or PILToTensor before it")
    if name == "Normalize" and state != "float" and not isinstance(step, own.Transform):
        raise CannotTakeOver("Normalize before ToTensor")
    if name in ("ToImage", "PILToTensor", "ToTensor") and state != "pil" and not isinstance(step, own.Transform):
        raise CannotTakeOver(f"{name} on what is a tensor already")


def _state_after(step: Any, state: str) -> str:
    name = _name(step)
    if name in ("ToImage", "PILToTensor"):
        return "uint8"
    if name in ("ToTensor", "ToDtype", "Normalize"):
        return "float"
    return state


def _name(step: Any) -> str:
    return getattr(step, "__name__", type(step).__name__)


def _modules() -> tuple[Any, Any]:
    import torchvision.transforms as v1
    from torchvision.transforms import v2

    return v1, v2


def _flatten(transform: Any) -> list[Any]:
    """The steps of nested Compose objects."""
    if transform is None:
        return []
    if "torchvision" not in sys.modules:
        return [transform]
    v1, v2 = _modules()
    if type(transform) in (v1.Compose, v2.Compose):
        return [step for inner in transform.transforms for step in _flatten(inner)]
    return [transform]


def _filter(step: Any) -> str:
    name = str(getattr(step.interpolation, "value", step.interpolation))
    if name not in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"):
        raise CannotTakeOver(f"{_name(step)} with interpolation {name!r}")
    return name


def _fill(step: Any) -> Any:
    fill = step.fill
    if isinstance(fill, dict):  # v2 keeps one for each type of input
        raise CannotTakeOver(f"{_name(step)} with a fill for each type")
    if fill is None:
        return 0
    whole = [int(f) for f in fill] if isinstance(fill, Sequence) else int(fill)
    if whole != (list(fill) if isinstance(fill, Sequence) else fill):
        raise CannotTakeOver(f"{_name(step)} with fill {fill!r}: whole numbers 0..255 are possible")
    return whole[0] if isinstance(whole, list) and len(whole) == 1 else whole


def _padding(padding: Any) -> Any:
    if isinstance(padding, Sequence) and len(padding) == 1:
        return padding[0]
    return list(padding) if isinstance(padding, Sequence) else padding


def _size(size: Any) -> Any:
    if isinstance(size, Sequence):
        return size[0] if len(size) == 1 else list(size)
    return size


def _square(size: Any) -> Any:
    return [size[0], size[0]] if isinstance(size, Sequence) and len(size) == 1 else _size(size)


def _resize(step: Any) -> own.Transform:
    if step.size is None:
        raise CannotTakeOver("Resize without a size")
    return own.Resize(_size(step.size), _filter(step), step.max_size)


def _random_crop(step: Any) -> own.Transform:
    padding = None if step.padding is None else _padding(step.padding)
    return own.RandomCrop(_square(step.size), padding, step.pad_if_needed, _fill(step), str(step.padding_mode))


def _random_resized_crop(step: Any) -> own.Transform:
    return own.RandomResizedCrop(_square(step.size), step.scale, step.ratio, _filter(step))


def _normalize(step: Any) -> own.Transform:
    return own.Normalize(list(step.mean), list(step.std))


def _to_dtype(step: Any) -> own.Transform:
    import torch

    dtypes = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
    if step.dtype not in dtypes or not step.scale:
        raise CannotTakeOver(f"ToDtype({step.dtype}, scale={step.scale})")
    if step.dtype is not torch.float32:
        # Scaling there happens in the 16-bit type, and what follows works in it.
        raise CannotTakeOver(f"ToDtype({step.dtype}); use float32, and stoker.To for the result")
    return own.ToTensor()


def _table() -> dict[type, Callable[[Any], own.Transform | None]]:
    """What each class becomes; None: nothing to do. Exact classes only: a subclass may do anything."""
    v1, v2 = _modules()
    table: dict[type, Callable[[Any], own.Transform | None]] = {}
    for module in (v1, v2):
        table[module.Resize] = _resize
        table[module.CenterCrop] = lambda step: own.CenterCrop(_square(step.size))
        table[module.RandomCrop] = _random_crop
        table[module.Pad] = lambda step: own.Pad(_padding(step.padding), _fill(step), str(step.padding_mode))
        table[module.RandomResizedCrop] = _random_resized_crop
        table[module.RandomHorizontalFlip] = lambda step: own.RandomHorizontalFlip(step.p)
        table[module.RandomVerticalFlip] = lambda step: own.RandomVerticalFlip(step.p)
        table[module.Grayscale] = lambda step: own.Grayscale(step.num_output_channels)
        table[module.ToTensor] = lambda step: own.ToTensor()
        table[module.PILToTensor] = lambda step: None  # Taken.text ends the spec with to(u8,nchw)
        table[module.Normalize] = _normalize
    table[v2.ToImage] = lambda step: None
    table[v2.ToDtype] = _to_dtype
    table[v2.RGB] = lambda step: None
    table[v2.Identity] = lambda step: None
    return table


def _convert(step: Any) -> str:
    if isinstance(step, own.Transform):
        return step.spec
    if isinstance(step, Spec):
        return step.text
    if "torchvision" not in sys.modules:
        raise CannotTakeOver(f"{_name(step)}: not a transform that Stoker knows")
    convert = _table().get(type(step))
    if convert is None:
        raise CannotTakeOver(f"{_name(step)}: Stoker has no equal of it")
    made = convert(step)
    return made.spec if made is not None else ""
