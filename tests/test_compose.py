# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms taken over as specs: every class of v1 and v2 gives torchvision's result, the rest is
refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stoker
import torch
import torchvision.transforms as v1
from numpy.typing import NDArray
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2
from with_draws import with_draws

pytestmark = pytest.mark.filterwarnings("ignore:Anti-alias option", "ignore:The transform `ToTensor")

SIZES = [(97, 64), (33, 120), (50, 50)]  # height, width
BOTH = [v1, v2]
SEEDS = range(6)
FILTERS = [mode for mode in InterpolationMode if mode is not InterpolationMode.NEAREST_EXACT]


def pixels(height: int, width: int) -> NDArray[np.uint8]:
    made = np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    made[: height // 2, :, 0] = 255  # edges, and levels at both ends
    made[:, : width // 3, 1] = 0
    return made


def as_array(result: Any) -> NDArray[Any]:
    if isinstance(result, torch.Tensor):
        return result.numpy()
    array = np.asarray(result)
    return array if array.ndim == 3 else array[..., None]


def same(transform: Any, images: list[NDArray[np.uint8]] | None = None) -> int:
    """Compares a transform, taken over, with torchvision's; gives the number of comparisons."""
    spec = stoker.Spec(stoker.from_torchvision(transform))
    made = 0
    for image in images or [pixels(*size) for size in SIZES]:
        height, width = image.shape[:2]
        for seed in SEEDS if "random" in spec.text else [0]:
            draws = spec.draw(seed, 0, 0, width, height)
            left = iter(draws)
            right = as_array(with_draws(transform, left)(Image.fromarray(image)))
            assert next(left, None) is None
            got = spec.apply(image, draws, output="numpy")
            assert got.dtype == right.dtype
            assert got.shape == right.shape
            assert np.array_equal(got, right)
            made += 1
    return made


RESIZES: list[Callable[[Any], Any]] = [
    lambda m: m.Resize(40),
    lambda m: m.Resize([40]),
    lambda m: m.Resize((30, 70)),
    lambda m: m.Resize([70, 30]),
    lambda m: m.Resize(40, max_size=60),
    lambda m: m.Resize(size=40, interpolation=InterpolationMode.BICUBIC, max_size=41),
    lambda m: m.Resize((31, 17), antialias=False),
    lambda m: m.Resize((31, 17), antialias=True),
    lambda m: m.Resize((31, 17), antialias=None),
    lambda m: m.Resize((31, 17), interpolation=Image.Resampling.LANCZOS.value),
]
CROPS: list[Callable[[Any], Any]] = [
    lambda m: m.CenterCrop(32),
    lambda m: m.CenterCrop([32]),
    lambda m: m.CenterCrop((21, 40)),
    lambda m: m.CenterCrop((200, 33)),
    lambda m: m.RandomCrop(32),
    lambda m: m.RandomCrop([32]),
    lambda m: m.RandomCrop((32, 20)),
    lambda m: m.RandomCrop(32, padding=4),
    lambda m: m.RandomCrop(32, padding=[4]),
    lambda m: m.RandomCrop(32, padding=(4, 2), fill=17),
    lambda m: m.RandomCrop(32, padding=[1, 2, 3, 4], fill=(1, 2, 3)),
    lambda m: m.RandomCrop(32, 4, fill=0, padding_mode="reflect"),
    lambda m: m.RandomCrop(32, 4, padding_mode="edge"),
    lambda m: m.RandomCrop((100, 130), pad_if_needed=True),
    lambda m: m.RandomCrop((100, 130), pad_if_needed=True, padding_mode="symmetric"),
    lambda m: m.RandomCrop((100, 130), padding=3, pad_if_needed=True, fill=9),
    lambda m: m.RandomCrop((100, 130), padding=3, pad_if_needed=True, padding_mode="edge"),
    lambda m: m.RandomResizedCrop(24),
    lambda m: m.RandomResizedCrop([24]),
    lambda m: m.RandomResizedCrop((24, 36)),
    lambda m: m.RandomResizedCrop(24, scale=(0.3, 0.9), ratio=(1.0, 1.0)),
    lambda m: m.RandomResizedCrop(24, [0.5, 1], [0.5, 2], InterpolationMode.LANCZOS),
    lambda m: m.RandomResizedCrop(24, antialias=False),
    lambda m: m.RandomResizedCrop(24, ratio=(9.0, 10.0)),
]
OTHERS: list[Callable[[Any], Any]] = [
    lambda m: m.Pad(3),
    lambda m: m.Pad([3]),
    lambda m: m.Pad((3, 5)),
    lambda m: m.Pad([1, 2, 3, 4], fill=(200, 100, 0)),
    lambda m: m.Pad(4, fill=255.0),
    lambda m: m.Pad(4, padding_mode="edge"),
    lambda m: m.Pad((5, 2), padding_mode="reflect"),
    lambda m: m.Pad(6, 0, "symmetric"),
    lambda m: m.RandomHorizontalFlip(),
    lambda m: m.RandomHorizontalFlip(p=0),
    lambda m: m.RandomHorizontalFlip(1.0),
    lambda m: m.RandomVerticalFlip(),
    lambda m: m.RandomVerticalFlip(0.9),
    lambda m: m.Grayscale(),
    lambda m: m.Grayscale(num_output_channels=3),
    lambda m: m.PILToTensor(),
    lambda m: m.Compose([m.PILToTensor(), m.ConvertImageDtype(torch.float32)]),
    lambda m: m.Compose([m.PILToTensor(), m.ConvertImageDtype(torch.float32), m.Normalize([0.5], [0.25])]),
    lambda m: m.Compose([v1.ToTensor(), m.Normalize((0.1, 0.2, 0.3), (0.5, 0.25, 2))]),
    lambda m: m.Compose([v1.ToTensor(), m.Normalize(torch.tensor([0.1, 0.2, 0.3]), np.float64([0.4, 0.5, 0.6]))]),
    lambda m: m.Compose([v1.ToTensor(), m.Normalize([0.5] * 3, [0.5] * 3, inplace=True)]),
    lambda m: m.Compose([m.Grayscale(), v1.ToTensor(), m.Normalize((0.1307,), (0.3081,))]),
    lambda m: m.Compose([v1.ToTensor(), m.Pad(3), m.Normalize([0.5], [0.25]), m.Pad(2, padding_mode="reflect")]),
    lambda m: m.Compose([v1.ToTensor(), m.RandomHorizontalFlip(), m.RandomCrop(20), m.CenterCrop(30)]),
    lambda m: m.Compose([m.PILToTensor(), m.CenterCrop(130), m.RandomVerticalFlip(), m.RandomCrop(31)]),
    lambda m: v1.Compose([]),
]


@pytest.mark.parametrize("module", BOTH, ids=["v1", "v2"])
@pytest.mark.parametrize("number", range(len(RESIZES + CROPS + OTHERS)))
def test_transform_gives_torchvisions_result(module: Any, number: int, comparisons: Callable[[int], None]) -> None:
    comparisons(same((RESIZES + CROPS + OTHERS)[number](module)))


@pytest.mark.parametrize("module", BOTH, ids=["v1", "v2"])
@pytest.mark.parametrize("mode", FILTERS)
def test_every_interpolation(module: Any, mode: InterpolationMode, comparisons: Callable[[int], None]) -> None:
    comparisons(same(module.Resize((37, 23), mode)))
    comparisons(same(module.RandomResizedCrop(23, interpolation=mode)))


FLOAT = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]


@pytest.mark.parametrize(
    "transform",
    [
        v2.ToImage(),
        v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip()]),
        v2.Compose(FLOAT),
        v2.Compose([*FLOAT, v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]), v2.ToPureTensor()]),
        v2.Compose([v2.RGB(), v2.Identity(), v2.Resize(30), v2.PILToTensor(), v2.ToDtype(torch.float32, True)]),
        v2.Compose([v2.Grayscale(), v2.RGB(), *FLOAT]),
        v2.Compose([v2.Pad(3, fill=None), *FLOAT]),
        v2.Compose([v2.Pad(3, fill=7), v2.ToImage(), v2.Pad((1, 2), padding_mode="edge"), v2.CenterCrop(20)]),
    ],
    ids=str,
)
def test_what_only_v2_has(transform: Any, comparisons: Callable[[int], None]) -> None:
    comparisons(same(transform))


def test_every_level_becomes_the_same_float(comparisons: Callable[[int], None]) -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, axis=2)
    for transform in [
        v1.ToTensor(),
        v2.Compose(FLOAT),
        v1.Compose([v1.PILToTensor(), v1.ConvertImageDtype(torch.float32)]),
        v2.Compose([v2.PILToTensor(), v2.ConvertImageDtype(torch.float32)]),
    ]:
        comparisons(same(transform, [levels]))


def test_nested_compose_of_both_kinds(comparisons: Callable[[int], None]) -> None:
    inner = v1.Compose([v1.RandomResizedCrop(48), v1.Compose([v1.RandomHorizontalFlip()])])
    transform = v2.Compose([v2.Compose([inner, v2.Pad(2, fill=(9, 8, 7))]), v1.Compose([]), v1.ToTensor()])
    names = [word.split("(")[0] for word in stoker.from_torchvision(transform).split(" ")]
    assert names == ["random_resized_crop", "random_horizontal_flip", "pad", "to_tensor"]
    comparisons(same(transform))


def test_loader_takes_a_torchvision_transform(comparisons: Callable[[int], None]) -> None:
    images = np.stack([pixels(40, 40), pixels(40, 40)[::-1]])
    transform = v1.Compose([v1.CenterCrop(20), v1.ToTensor()])
    with stoker.Loader((images, [0, 1]), transform, batch=2, shuffle=False, output="torch") as loader:
        [(got, _)] = loader
    assert torch.equal(got, torch.stack([transform(Image.fromarray(image)) for image in images]))
    comparisons(2)


def test_rgb_of_a_gray_dataset_has_three_channels(comparisons: Callable[[int], None]) -> None:
    images = pixels(20, 20)[None, :, :, 0].copy()
    transform = v2.Compose([v2.RGB(), v2.ToImage()])
    with stoker.Loader((images, [0]), transform, batch=1, shuffle=False, output="torch") as loader:
        [(got, _)] = loader
    assert torch.equal(got[0], transform(Image.fromarray(images[0])).as_subclass(torch.Tensor))
    comparisons(1)


class MyResize(v1.Resize):
    """May do anything."""


def double(image: Any) -> Any:
    return image


REFUSALS = [
    (v1.ColorJitter(0.5), "ColorJitter"),
    (v2.ColorJitter(0.5), "ColorJitter"),
    (v1.Lambda(double), "Lambda"),
    (lambda image: image, "<lambda>"),
    (double, "double"),
    (MyResize(3), "MyResize"),
    (v1.RandomRotation(10), "RandomRotation"),
    (v2.AutoAugment(), "AutoAugment"),
    (v1.RandomApply([v1.Resize(3)]), "RandomApply"),
    (v1.Compose([v1.ToTensor(), v1.RandomErasing()]), "RandomErasing"),
    (torch.nn.Sequential(v1.Resize(3)), "Sequential"),
    (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32)]), "ToDtype"),
    (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float16, scale=True)]), "ToDtype"),
    (v2.Compose([v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)]), "ToDtype"),
    (v2.ToDtype(torch.float32, scale=True), "ToDtype"),
    (v1.Compose([v1.PILToTensor(), v1.ConvertImageDtype(torch.float16)]), "ConvertImageDtype"),
    (v1.ConvertImageDtype(torch.float32), "ConvertImageDtype"),
    (v1.Compose([v1.ToTensor(), v1.Resize(20)]), "Resize"),
    (v2.Compose([v2.ToImage(), v2.Resize(20)]), "Resize"),
    (v2.Compose([v2.ToImage(), v2.RandomResizedCrop(20)]), "RandomResizedCrop"),
    (v1.Compose([v1.PILToTensor(), v1.Grayscale()]), "Grayscale"),
    (v1.Compose([v1.ToTensor(), v1.ToTensor()]), "ToTensor"),
    (v2.Compose([v2.ToImage(), v1.ToTensor()]), "ToTensor"),
    (v1.Normalize([0.5], [0.5]), "Normalize"),
    (v1.Compose([v1.PILToTensor(), v1.Normalize([0.5], [0.5])]), "Normalize"),
    (v1.Resize(20, InterpolationMode.NEAREST_EXACT), "Resize"),
    (v2.Resize(None, max_size=20), "Resize"),
    (v2.Pad(2, fill={tv_tensors.Image: 3, "others": 0}), "Pad"),
    (v2.RandomCrop(20, 2, fill={Image.Image: 3}), "RandomCrop"),
    (v1.Pad(2, fill=2.5), "Pad"),
    (v1.Pad(2, fill=256), "pad"),
    (v1.Compose([v1.ToTensor(), v1.Pad(2, fill=1)]), "Pad"),
    (v1.Compose([v1.ToTensor(), v1.Normalize([0.5], [0.5]), v1.CenterCrop(9)]), "CenterCrop"),
    (v2.RandomCrop(99, 2, pad_if_needed=True, padding_mode="reflect"), "RandomCrop"),
]


@pytest.mark.parametrize(("transform", "name"), REFUSALS)
def test_refused_by_name(transform: Any, name: str) -> None:
    before = v1.RandomHorizontalFlip()
    steps = transform.transforms if isinstance(transform, (v1.Compose, v2.Compose)) else [transform]
    with pytest.raises(stoker.SettingError, match=name) as caught:
        stoker.from_torchvision(v2.Compose([before, *steps]))
    assert f"(position {len(steps)})" in str(caught.value)  # the last is what is refused


NORMALIZE = ([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
LISTS = [
    [v1.Resize(32), v1.CenterCrop(30), v1.ToTensor(), v1.Normalize(*NORMALIZE)],
    [v2.Grayscale(1), v2.RGB(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)],
    [v1.Compose([v1.CenterCrop(30), v1.PILToTensor()]), [v1.ConvertImageDtype(torch.float32)]],
    [v1.PILToTensor(), v1.CenterCrop(30)],
]


@pytest.mark.parametrize("steps", LISTS)
def test_a_list_is_what_a_compose_of_it_is(steps: list[Any], comparisons: Callable[[int], None]) -> None:
    """What one of torchvision's transforms means depends on those before it."""
    flat = [one for step in steps for one in (step if isinstance(step, list) else [step])]
    images = np.stack([pixels(50, 60), pixels(50, 60)[::-1]])
    with stoker.Loader((images, [0, 1]), steps, batch=2, shuffle=False, output="torch") as loader:
        got, _ = next(iter(loader))
    right = torch.stack([torch.as_tensor(v1.Compose(flat)(Image.fromarray(image))) for image in images])
    assert got.dtype == right.dtype
    assert torch.equal(got, right)
    comparisons(len(images))


@pytest.mark.parametrize("first", ["center_crop(30) to_tensor", stoker.Spec("center_crop(30) normalize(imagenet)")])
def test_text_and_specs_may_precede_torchvisions(first: Any) -> None:
    text = first if isinstance(first, str) else first.text
    mixed = stoker.from_torchvision([first, v1.Normalize(*NORMALIZE)])
    assert stoker.Spec(mixed) == stoker.Spec(f"{text} normalize((0.5,0.4,0.3),(0.2,0.3,0.4))")
    gray = stoker.from_torchvision(["grayscale(1)", v2.RGB(), v1.ToTensor()])
    assert gray == "grayscale(1) grayscale(num_output_channels=3) to_tensor"
    with pytest.raises(stoker.SettingError, match="Resize"):
        stoker.from_torchvision([first, v1.Resize(20)])
    with pytest.raises(stoker.SettingError, match="resise"):
        stoker.from_torchvision([v1.CenterCrop(30), "resise(3)"])
