# SPDX-License-Identifier: Apache-2.0
"""Every transform, alone and in whole pipelines, gives torchvision's result on a PIL image, to the last bit.

The draws are Stoker's; torchvision's functions replay them. No test here knows a tolerance.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from replay import (
    FILTERS,
    MODES,
    NORMALS,
    Dice,
    Transform,
    center_crop,
    flip,
    grayscale,
    normalize,
    pad,
    plain,
    preset,
    random_crop,
    random_resized_crop,
    replay,
    resize,
    text_of,
    to,
    to_tensor,
)
from spec_by_ctypes import DTYPES, LAYOUTS, Spec, SpecError, cpu

Count = Callable[[int], None]


def check(transforms: list[Transform], pixels: NDArray[np.uint8], count: Count, seed: int = 0) -> NDArray[Any]:
    """One image through the spec and through torchvision."""
    spec = Spec(text_of(transforms))
    height, width = pixels.shape[:2]
    draws = spec.draw(seed, seed % 7, seed, width, height)
    got = spec.apply(pixels, draws)
    expected = replay(transforms, plain(pixels), draws)
    where = f"{text_of(transforms)} on {width} x {height} x {pixels.shape[2]}, draws {draws}"
    assert got.shape == expected.shape and got.dtype == expected.dtype, where
    if got.tobytes() != expected.tobytes():
        wrong = np.argwhere(got != expected)
        pytest.fail(f"{where}: {len(wrong)} of {got.size} values differ, the first at {wrong[:1].tolist()}")
    count(1)
    return got


@pytest.mark.parametrize("interpolation", FILTERS)
def test_weights_of_every_pair_of_sizes(interpolation: str, comparisons: Count) -> None:
    """Each output column (row) of a noisy strip sums its own weights 40 times: a weight off by one unit shows."""
    dice = Dice(1)
    for before, after in itertools.product(range(1, 57), range(1, 57)):
        strip = dice.image(40, before, gray=True)
        check([resize((after, 40), interpolation)], strip, comparisons)
        check([resize((40, after), interpolation)], strip.transpose(1, 0, 2), comparisons)


@pytest.mark.parametrize("interpolation", FILTERS)
def test_resize_of_random_sizes(interpolation: str, comparisons: Count) -> None:
    """Both passes, in the order that Pillow chooses by the sizes."""
    dice = Dice(2)
    for _ in range(400):
        check([resize((dice.side(), dice.side()), interpolation)], dice.image(), comparisons)


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize(
    ("width", "height", "size"),
    [
        (8192, 3, (8, 8)),
        (3, 8192, (8, 8)),
        (8192, 40, (3, 8)),
        (1, 5000, (224, 224)),
        (5000, 1, (224, 224)),
        (941, 941, (10, 10)),
        (1, 1, (224, 224)),
        (224, 224, (1, 1)),
        (3, 3, (700, 2)),
        (2, 2, (2, 2)),
    ],
)
def test_resize_to_extremes(
    interpolation: str, width: int, height: int, size: tuple[int, int], comparisons: Count
) -> None:
    dice = Dice(3)
    for gray in (False, True):
        check([resize(size, interpolation)], dice.image(width, height, gray), comparisons)


def test_resize_with_a_part_needed_only(comparisons: Count) -> None:
    """What is cut away after a resize is not computed: what is left must not change."""
    dice = Dice(4)
    for _ in range(700):
        crop = (dice.side(100), dice.side(100))
        first = resize((dice.side(), dice.side()), dice.filter())
        second = resize((dice.side(), dice.side()), dice.filter())
        check([first, second, center_crop(crop)], dice.image(), comparisons)


def test_resize_to_the_shorter_side(comparisons: Count) -> None:
    dice = Dice(5)
    for _ in range(700):
        size = dice.random.randint(4, 90)
        most = dice.random.choice([None, size + dice.random.randint(1, 30)])
        image = dice.image(dice.random.randint(20, 300), dice.random.randint(20, 300))
        check([resize(size, dice.filter(), most)], image, comparisons)


def test_crops_pads_and_flips_alone(comparisons: Count) -> None:
    dice = Dice(6)
    for seed in range(2500):
        pixels = dice.image()
        height, width, channels = pixels.shape
        check([dice.geometry(width, height, channels)], pixels, comparisons, seed)


@pytest.mark.parametrize("mode", MODES)
def test_pads_larger_than_the_image(mode: str, comparisons: Count) -> None:
    """Reflections of reflections; a side of one pixel has none to reflect."""
    dice = Dice(7)
    for width, height in itertools.product([1, 2, 3, 5], repeat=2):
        for _ in range(8):
            sides = tuple(dice.random.randint(0, 17) for _ in range(4))
            check([pad(sides, 9, mode)], dice.image(width, height), comparisons)
            size = (dice.random.randint(height, 40), dice.random.randint(width, 40))
            check([random_crop(size, sides, True, 3, mode)], dice.image(width, height), comparisons, width)


def test_center_crop_rounds_half_to_even(comparisons: Count) -> None:
    for (width, height), (crop_width, crop_height) in itertools.product(
        itertools.product(range(1, 8), repeat=2), itertools.product(range(1, 8), repeat=2)
    ):
        check([center_crop((crop_height, crop_width))], Dice(8).image(width, height), comparisons)


def test_grayscale_of_every_level(comparisons: Count) -> None:
    """Luma is rounded in 16 bits: all levels of each channel with random others."""
    dice = Dice(9)
    pixels = dice.image(256, 256, gray=False)
    pixels[:, :, 0] = np.arange(256)
    pixels[:, :, 1] = np.arange(256)[:, None]
    for channels in (1, 3):
        check([grayscale(channels)], pixels, comparisons)
        check([grayscale(channels), grayscale(4 - channels)], pixels, comparisons)
        check([grayscale(channels)], dice.image(20, 20, gray=True), comparisons)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_dtype_and_layout(dtype: str, layout: str, comparisons: Count) -> None:
    """All 256 values of each channel, at widths around the vectors' and both ways round."""
    dice = Dice(10)
    for width in [*range(1, 40), 255, 256, 257, 600]:
        for gray in (False, True):
            pixels = dice.image(width, 3, gray)
            channels = pixels.shape[2]
            ways: list[list[Transform]] = [[]]
            if dtype != "u8":
                ways += [[to_tensor()], [dice.numbers(channels)], [dice.numbers(channels), dice.numbers(channels)]]
            for way in ways:
                flips = [flip(True, 0.5), flip(False, 0.5)]
                check([*flips, *way, to(dtype, layout)], pixels, comparisons, width)


@pytest.mark.parametrize("name", NORMALS)
def test_presets(name: str, comparisons: Count) -> None:
    every = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    check([preset(name)], every, comparisons)
    if len(NORMALS[name][0]) == 1:
        check([preset(name)], every[:, :, :1], comparisons)


def test_odd_normalisations(comparisons: Count) -> None:
    """Means and deviations where a quotient by a reciprocal is not the rounded quotient must not take that way."""
    every = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    dice = Dice(11)
    for exponent in range(-36, 37):
        for _ in range(4):
            std = tuple(dice.random.uniform(1, 10) * 10.0**exponent for _ in range(3))
            mean = tuple(dice.random.uniform(-1, 1) * 10.0 ** dice.random.randint(-3, 3) for _ in range(3))
            check([normalize(mean, std)], every, comparisons)
            check([normalize(mean, std), to("f16", "nchw")], every, comparisons)


def test_orders_that_commute_with_arithmetic(comparisons: Count) -> None:
    """torchvision takes flips and crops of tensors too; here they run on bytes, with the same result."""
    dice = Dice(12)
    for seed in range(200):
        pixels = dice.image(dice.random.randint(20, 60), dice.random.randint(20, 60), gray=False)
        height, width, _ = pixels.shape
        inside = (dice.random.randint(1, height), dice.random.randint(1, width))
        crop = f"random_crop(({inside[0]},{inside[1]}))"
        spec = Spec(f"to_tensor {crop} random_horizontal_flip normalize(imagenet) random_vertical_flip")
        draws = spec.draw(seed, 0, seed, width, height)
        before = [random_crop(inside), flip(True), flip(False), preset("imagenet")]
        assert spec.apply(pixels, draws).tobytes() == replay(before, plain(pixels), draws).tobytes()
        comparisons(1)


def test_whole_pipelines(comparisons: Count) -> None:
    """Up to five transforms in any order, each on what the last one left, then numbers."""
    dice = Dice(13)
    for seed in range(2500):
        pixels = dice.image()
        height, width, channels = pixels.shape
        transforms: list[Transform] = []
        for _ in range(dice.random.randint(1, 5)):
            transform = dice.geometry(width, height, channels)
            spec = Spec(text_of([*transforms, transform, to("u8", "nchw")]))
            channels, height, width = spec.apply(pixels, spec.draw(seed, seed % 7, seed, *pixels.shape[1::-1])).shape
            transforms.append(transform)
            if width * height > 100_000:
                break
        dtype = dice.random.choice(DTYPES)
        if dtype != "u8" and dice.random.random() < 0.7:
            transforms.append(dice.numbers(channels))
        transforms.append(to(dtype, dice.random.choice(LAYOUTS)))
        check(transforms, pixels, comparisons, seed)


TRAIN = [random_resized_crop((224, 224)), flip(True), preset("imagenet"), to("f32", "nchw")]
VALIDATE = [resize(256), center_crop(224), preset("imagenet"), to("f32", "nchw")]


def test_photos_from_file_to_tensor(photos: list[Path], comparisons: Count) -> None:
    """Encoded bytes in, decoding only the region needed: equal to Pillow's whole decode and torchvision's pipeline."""
    for number, path in enumerate(photos):
        data = path.read_bytes()
        image = Image.open(io.BytesIO(data)).convert("RGB")
        for transforms in (TRAIN, VALIDATE) if number % 4 == 0 else (TRAIN,):
            spec = Spec(text_of(transforms))
            draws = spec.draw(11, number % 3, number, image.width, image.height)
            got = spec.apply_encoded(data, draws)
            assert got.tobytes() == replay(transforms, image, draws).tobytes(), f"{path}: {spec.text}, {draws}"
            comparisons(1)


def test_made_up_draws_are_checked() -> None:
    """Draws may come from the caller: hostile ones are an error, never a read outside the image."""
    pixels = Dice(14).image(40, 30, gray=False)
    spec = Spec("random_resized_crop(8) random_horizontal_flip")
    crop, turn = spec.draw(0, 0, 0, 40, 30)
    most = 2**31 - 1
    for value in [
        (-1, 0, 5, 5),
        (0, -1, 5, 5),
        (0, 0, 0, 5),
        (0, 0, 5, 0),
        (0, 0, 31, 5),
        (0, 0, 5, 41),
        (26, 0, 5, 5),
        (0, 36, 5, 5),
        (most, most, most, most),
        (-most - 1, 0, most, 5),
        (1, 1, most, most),
    ]:
        with pytest.raises(SpecError):
            spec.apply(pixels, [type(crop)(crop.transform, crop.kind, value), turn])
    for draws in ([], [crop], [turn, crop], [crop, turn, turn], [crop, crop], [turn, turn]):
        with pytest.raises(SpecError):
            spec.apply(pixels, draws)
    assert spec.apply(pixels, [crop, turn]).shape == (8, 8, 3)


def test_what_torchvision_refuses_is_refused() -> None:
    gray, colour = Dice(15).image(8, 8, gray=True), Dice(15).image(8, 8, gray=False)
    for text, pixels in [
        ("pad(2,fill=(1,2,3))", gray),
        ("normalize(imagenet)", gray),
        ("grayscale normalize(imagenet)", colour),
    ]:
        with pytest.raises(SpecError):
            Spec(text).apply(pixels, [])
    for text in ("random_crop(9)", "random_crop((8,20),padding=(2,0))", "resize(1) resize(1,max_size=2)"):
        spec = Spec(text)
        with pytest.raises(SpecError):
            spec.draw(0, 0, 0, 8, 8) if "crop" in text else spec.apply(Dice(15).image(1, 300, True), [])


def digest() -> str:
    """One number for thousands of results, on whatever instruction set this process uses."""
    dice, total = Dice(16), hashlib.sha256()
    for seed in range(300):
        pixels = dice.image()
        height, width, channels = pixels.shape
        numbers = dice.numbers(channels)
        spec = Spec(
            text_of(
                [
                    random_resized_crop((dice.side(), dice.side()), interpolation=dice.filter()),
                    flip(True),
                    numbers,
                    to(dice.random.choice(DTYPES[1:]), dice.random.choice(LAYOUTS)),
                ]
            )
        )
        total.update(spec.apply(pixels, spec.draw(seed, 0, seed, width, height)).tobytes())
    return total.hexdigest()


def test_every_instruction_set_gives_the_same_bits() -> None:
    here = digest()
    program = "import test_transforms_parity as t; print(t.cpu(), t.digest())"
    seen = {cpu()}
    names = ("scalar", "neon") if platform.machine() == "aarch64" else ("scalar", "avx2", "avx512")
    for name in names:
        environment = {**os.environ, "STOKER_CPU": name}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parent,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and done.stdout.split()[0] == name:
            assert done.stdout.split()[1] == here, name
            seen.add(name)
    assert "scalar" in seen
