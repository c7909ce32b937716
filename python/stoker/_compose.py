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


def spec_text(ops: Any, channels: int = 3) -> str:
    """Whatever a Loader takes as `ops`, as a spec's text, for images of so many channels."""
    steps = _flatten(ops)
    if all(isinstance(step, (str, Spec, own.Transform)) for step in steps):
        return " ".join(_own_text(step) for step in steps)
    # What one of torchvision's transforms means depends on those before it, so the list is taken as a whole.
    return from_torchvision(steps, channels)


def _own_text(step: str | Spec | own.Transform) -> str:
    if isinstance(step, str):
        return step
    return step.text if isinstance(step, Spec) else step.spec


def from_torchvision(transform: Any, channels: int = 3) -> str:
    """The spec of a torchvision transform or Compose (v1 or v2), or of a list of them.

    :param channels: of the images that it is for, 3 or 1; only v2.RGB depends on it.
    :raises CannotTakeOver: naming the transform that has no equal here, and its place.
    """
    taken = split_torchvision(transform, channels)
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


def split_torchvision(transform: Any, channels: int = 3) -> Taken:
    """Takes over as much of `transform` as a spec can express, for images of so many channels."""
    steps = _flatten(transform)
    specs: list[str] = []
    state = "pil"
    for place, step in enumerate(steps):
        try:
            _check_state(step, state)
            text = _convert(step, channels)
            Spec(" ".join([*specs, text]))
        except CannotTakeOver as error:
            return Taken(specs, state, steps[place:], f"{error} (position {place})")
        except SettingError as error:
            return Taken(specs, state, steps[place:], f"{_name(step)} (position {place}): {error}")
        if text:
            specs.append(text)
        state = _state_after(step, state)
        channels = _channels_after(step, channels)
    return Taken(specs, state, [], "")


# On tensors torchvision's arithmetic is another than Pillow's for these.
_PIL_ONLY = ("Resize", "RandomResizedCrop", "Grayscale", "RGB")


def _check_state(step: Any, state: str) -> None:
    name = _name(step)
    if state != "pil" and name in _PIL_ONLY:
        raise CannotTakeOver(f"{name} after the image has become a tensor, where torchvision computes in another way")
    if name in ("ToDtype", "ConvertImageDtype") and state != "uint8":
        raise CannotTakeOver(f"{name} without ToImage or PILToTensor before it")
    if name == "Normalize" and state != "float" and not isinstance(step, own.Transform):
        raise CannotTakeOver("Normalize before ToTensor")
    if name in ("ToImage", "PILToTensor", "ToTensor") and state != "pil" and not isinstance(step, own.Transform):
        raise CannotTakeOver(f"{name} on what is a tensor already")


def _state_after(step: Any, state: str) -> str:
    name = _name(step)
    if isinstance(step, (str, Spec)):
        return "float" if {"to_tensor", "normalize"} & {name for name, _ in _named(step)} else state
    if name in ("ToImage", "PILToTensor"):
        return "uint8"
    if name in ("ToTensor", "ToDtype", "ConvertImageDtype", "Normalize"):
        return "float"
    return state


def _channels_after(step: Any, channels: int) -> int:
    name = _name(step)
    if isinstance(step, (str, Spec)):
        counts = [arguments for name, arguments in _named(step) if name == "grayscale"]
        return int(counts[-1].partition("=")[2]) if counts else channels
    if name == "Grayscale":
        return step.arguments["num_output_channels"] if isinstance(step, own.Transform) else step.num_output_channels
    return 3 if name == "RGB" else channels


def _named(step: str | Spec) -> list[tuple[str, str]]:
    """(name, arguments) of the transforms of a text, canonical: no argument holds a blank."""
    whole = (step if isinstance(step, Spec) else Spec(step)).text.split()
    return [(name, arguments.rstrip(")")) for name, _, arguments in (one.partition("(") for one in whole)]


def _name(step: Any) -> str:
    return repr(step) if isinstance(step, str) else getattr(step, "__name__", type(step).__name__)


def _modules() -> tuple[Any, Any]:
    import torchvision.transforms as v1
    from torchvision.transforms import v2

    return v1, v2


def _flatten(transform: Any) -> list[Any]:
    """The steps of nested lists and Compose objects."""
    if transform is None:
        return []
    if isinstance(transform, (list, tuple)):
        return [step for inner in transform for step in _flatten(inner)]
    if "torchvision" not in sys.modules:
        return [transform]
    v1, v2 = _modules()
    if type(transform) in (v1.Compose, v2.Compose):
        return [step for inner in transform.transforms for step in _flatten(inner)]
    return [transform]


_FILTERS_OF_PILLOW = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # by Pillow's numbers


def _filter(step: Any) -> str:
    name = str(getattr(step.interpolation, "value", step.interpolation))
    if name.isdecimal() and int(name) < len(_FILTERS_OF_PILLOW):
        name = _FILTERS_OF_PILLOW[int(name)]
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
    if isinstance(step, _modules()[1].RandomCrop):
        if isinstance(padding, list) and len(padding) == 4:  # kept as left, right, top, bottom
            padding = [padding[0], padding[2], padding[1], padding[3]]
        if padding is not None and step.pad_if_needed and step.padding_mode in ("reflect", "symmetric"):
            # One mirroring by the whole width there, one after the other here and in v1.
            raise CannotTakeOver(f"v2.RandomCrop with padding, pad_if_needed and padding_mode={step.padding_mode!r}")
    return own.RandomCrop(_square(step.size), padding, step.pad_if_needed, _fill(step), str(step.padding_mode))


def _random_resized_crop(step: Any) -> own.Transform:
    return own.RandomResizedCrop(_square(step.size), step.scale, step.ratio, _filter(step))


def _normalize(step: Any) -> own.Transform:
    return own.Normalize(list(step.mean), list(step.std))


def _to_dtype(step: Any) -> own.Transform:
    import torch
    from torchvision.transforms import v2

    if step.dtype in (torch.float16, torch.bfloat16):
        # Scaling there happens in the 16-bit type, and what follows works in it.
        raise CannotTakeOver(f"{_name(step)}({step.dtype}); use float32, and stoker.To for the result")
    if step.dtype is not torch.float32 or not getattr(step, "scale", True):
        raise CannotTakeOver(f"{_name(step)}({step.dtype}, scale={getattr(step, 'scale', True)})")
    return own.ToTensor(reciprocal=isinstance(step, (v2.ToDtype, v2.ConvertImageDtype)))


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
        table[module.ConvertImageDtype] = _to_dtype
        table[module.Normalize] = _normalize
    table[v2.ToImage] = lambda step: None
    table[v2.ToDtype] = _to_dtype
    table[v2.ToPureTensor] = lambda step: None  # the result is one anyway
    table[v2.Identity] = lambda step: None
    return table


def _convert(step: Any, channels: int) -> str:
    if isinstance(step, (str, Spec, own.Transform)):
        return _own_text(step)
    if "torchvision" not in sys.modules:
        raise CannotTakeOver(f"{_name(step)}: not a transform that Stoker knows")
    if type(step) is _modules()[1].RGB:
        return "" if channels == 3 else own.Grayscale(3).spec
    convert = _table().get(type(step))
    if convert is None:
        raise CannotTakeOver(f"{_name(step)}: Stoker has no equal of it")
    made = convert(step)
    return made.spec if made is not None else ""
