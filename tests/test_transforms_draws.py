# SPDX-License-Identifier: Apache-2.0
"""Draws are those of docs/random.md, and are spread as torchvision's are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch
from spec_by_ctypes import CROP, FLIP, Draw, Spec, SpecError
from torchvision.transforms import RandomResizedCrop

Count = Callable[[int], None]
WORD = 0xFFFFFFFF


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        upper, lower = 0xCD9E8D57 * c2, 0xD2511F53 * c0
        c0, c1, c2, c3 = (upper >> 32) ^ c1 ^ k0, upper & WORD, (lower >> 32) ^ c3 ^ k1, lower & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


class Stream:
    def __init__(self, seed: int, epoch: int, sample: int, transform: int) -> None:
        self.key = (seed & WORD, seed >> 32)
        self.counter = (epoch & WORD, sample & WORD, (sample >> 32) ^ ((epoch >> 32) << 16 & WORD))
        self.transform, self.block = transform, 0
        self.words: list[int] = []

    def word(self) -> int:
        if not self.words:
            self.words = list(philox((self.transform << 16 | self.block, *self.counter), self.key))
            self.block += 1
        return self.words.pop(0)

    def unit(self) -> float:
        high = self.word() >> 5
        return (high * 2**26 + (self.word() >> 6)) / 2**53

    def below(self, n: int) -> int:
        product = self.word() * n
        while (product & WORD) < 2**32 % n:
            product = self.word() * n
        return product >> 32


def exp(x: float) -> float:
    k = math.floor(x / 0.693147180559945286227 + 0.5)
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    s = 1.0
    for n in range(17, 0, -1):
        s = 1.0 + r * s / n
    return math.ldexp(s, k)


def log(x: float) -> float:
    m, k = math.frexp(x)
    if m < 0.70710678118654752440:
        m, k = m * 2, k - 1
    t = (m - 1) / (m + 1)
    q, s = t * t, 0.0
    for n in range(25, 0, -2):
        s = s * q + 1 / n
    return k * 0.693147180559945286227 + 2 * t * s


def resized_crop(
    stream: Stream, width: int, height: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    area, low, high = float(width * height), log(ratio[0]), log(ratio[1])
    for _ in range(10):
        target = area * (scale[0] + (scale[1] - scale[0]) * stream.unit())
        aspect = exp(low + (high - low) * stream.unit())
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return stream.below(height - h + 1), stream.below(width - w + 1), h, w
    w, h = width, height
    if width / height < ratio[0]:
        h = max(round(width / ratio[0]), 1)
    elif width / height > ratio[1]:
        w = max(round(height * ratio[1]), 1)
    return (height - h) // 2, (width - w) // 2, h, w


def test_philox_gives_its_authors_known_answers() -> None:
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((WORD,) * 4, (WORD, WORD)) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    assert philox(pi, (0xA4093822, 0x299F31D0)) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


def test_exp_and_log_are_those_of_mathematics() -> None:
    for x in np.linspace(-20, 20, 2001).tolist():
        assert exp(x) == pytest.approx(math.exp(x), rel=1e-15)
        assert log(math.exp(x)) == pytest.approx(math.log(math.exp(x)), rel=1e-14, abs=1e-16)


def test_draws_are_those_of_the_page(comparisons: Count) -> None:
    """Seeds, epochs and samples from the whole 64 bits; images of any size; the order of transforms counts."""
    generator = np.random.default_rng(0)

    def number(bits: int) -> int:
        return int(generator.integers(0, 2 ** int(generator.integers(1, bits + 1)), dtype=np.uint64, endpoint=False))

    for _ in range(4000):
        seed, epoch, sample = number(63), number(63), number(63)
        width, height = number(10) + 1, number(10) + 1
        low = 0.02 + float(generator.random())
        scale, ratio = (low / 2, low / 2 + 0.4), (low, low * (1 + float(generator.random())))
        p = float(generator.random())
        crop = (number(9) + 1, number(9) + 1)
        spec = Spec(
            f"random_horizontal_flip({p!r}) random_resized_crop(7,scale=({scale[0]!r},{scale[1]!r}),"
            f"ratio=({ratio[0]!r},{ratio[1]!r})) grayscale random_vertical_flip "
            f"random_crop(({crop[0]},{crop[1]}),padding=(1,2,3,4),pad_if_needed=true)"
        )
        padded_width, padded_height = 7 + 4, 7 + 6
        padded_width += 2 * max(crop[1] - padded_width, 0)
        padded_height += 2 * max(crop[0] - padded_height, 0)
        last = Stream(seed, epoch, sample, 4)
        expected = [
            Draw(0, FLIP, (int(Stream(seed, epoch, sample, 0).unit() < p), 0, 0, 0)),
            Draw(1, CROP, resized_crop(Stream(seed, epoch, sample, 1), width, height, scale, ratio)),
            Draw(3, FLIP, (int(Stream(seed, epoch, sample, 3).unit() < 0.5), 0, 0, 0)),
            Draw(4, CROP, (last.below(padded_height - crop[0] + 1), last.below(padded_width - crop[1] + 1), *crop)),
        ]
        assert spec.draw(seed, epoch, sample, width, height) == expected
        comparisons(1)


def test_below_is_without_bias_at_awkward_sizes(comparisons: Count) -> None:
    """A crop of one pixel from a very wide image: rejected words must be drawn again as the page says."""
    for width in (3, 2**20 - 3, 12_000_001, 2**24 - 1):
        spec = Spec("random_crop(1)")
        for sample in range(500):
            stream = Stream(5, 0, sample, 0)
            top = stream.below(1)
            assert spec.draw(5, 0, sample, width, 1)[0].value == (top, stream.below(width), 1, 1)
            comparisons(1)


def ks(first: np.ndarray, second: np.ndarray) -> float:
    """The two-sample statistic of Kolmogorov and Smirnov, in units of its standard size."""
    every = np.sort(np.concatenate([first, second]))
    gap = np.searchsorted(np.sort(first), every, "right") / len(first)
    gap = gap - np.searchsorted(np.sort(second), every, "right") / len(second)
    return float(np.abs(gap).max() * math.sqrt(len(first) * len(second) / (len(first) + len(second))))


@pytest.mark.parametrize(("width", "height"), [(500, 375), (375, 500), (224, 224), (1000, 40), (9, 13)])
def test_resized_crops_are_spread_as_those_of_torchvision(width: int, height: int) -> None:
    """Area, aspect ratio and place; 1.95 is passed by chance once in a thousand tests."""
    count = 4000
    spec = Spec("random_resized_crop(224)")
    ours = np.array([spec.draw(1, 0, i, width, height)[0].value for i in range(count)], float)
    torch.manual_seed(1)
    image = torch.empty(3, height, width)
    theirs = np.array([RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(count)], float)
    for figure in (
        lambda v: v[:, 2] * v[:, 3],
        lambda v: v[:, 3] / v[:, 2],
        lambda v: v[:, 0],
        lambda v: v[:, 1],
        lambda v: v[:, 2],
    ):
        assert ks(figure(ours), figure(theirs)) < 1.95


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_flips_come_up_as_often_as_p_says(p: float) -> None:
    spec = Spec(f"random_horizontal_flip({p}) random_vertical_flip({p})")
    count = 20_000
    flips = np.array([[draw.value[0] for draw in spec.draw(2, 0, i, 5, 5)] for i in range(count)])
    for place in range(2):
        assert abs(flips[:, place].mean() - p) <= 4 * math.sqrt(p * (1 - p) / count)
    both = (flips[:, 0] & flips[:, 1]).mean()  # two transforms choose apart from each other
    assert abs(both - p * p) <= 4 * math.sqrt(p * p * (1 - p * p) / count)


def test_crops_are_uniform() -> None:
    spec = Spec("random_crop(32,padding=4)")
    count = 16_200
    seen = Counter(spec.draw(3, 0, i, 32, 32)[0].value[:2] for i in range(count))
    assert len(seen) == 81
    expected = count / 81
    chi_square = sum((n - expected) ** 2 / expected for n in seen.values())
    assert chi_square < 80 + 4 * math.sqrt(160)


def test_another_epoch_sample_or_seed_gives_another_draw() -> None:
    """Repeats over ten epochs stay at what chance gives."""
    spec = Spec("random_resized_crop(224)")
    for vary in range(3):
        drawn = [spec.draw(*[i if k == vary else 9 for k in range(3)], 2000, 2000)[0].value for i in range(2000)]
        assert len(set(drawn)) > 1995


def test_a_crop_larger_than_the_image_is_an_error_with_advice() -> None:
    with pytest.raises(SpecError, match=r"random_crop of 40 x 20 .* 32 x 32.*pad_if_needed"):
        Spec("random_crop((20,40))").draw(0, 0, 0, 32, 32)
