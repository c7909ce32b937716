# SPDX-License-Identifier: Apache-2.0
"""One broken image among many: each policy's result, count and list; labels stay aligned; the loader goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from library import PAD, RAISE, SKIP, SUBSTITUTE, Dataset, LibraryError, Loader

OPS = "resize(40) center_crop(32) to(u8,nchw)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, photos: list[Path]) -> Path:
    """1,000 photos in ten classes, number 617 of them cut in two."""
    root = tmp_path_factory.mktemp("broken")
    for i in range(1000):
        place = root / f"class{i // 100}"
        place.mkdir(exist_ok=True)
        (place / f"{i:04}.jpg").symlink_to(photos[i % 100])
    broken = root / "class6" / "0617.jpg"
    data = broken.read_bytes()
    broken.unlink()
    broken.write_bytes(data[: len(data) // 2])
    return root


def collect(
    folder: Path, **settings: int
) -> tuple[list[tuple[int, int]], list[int], list[str], list[tuple[int, int, str]]]:
    """(sample, label) of an epoch in order, batch sizes, errors, and what was skipped."""
    dataset = Dataset(folder)
    pairs: list[tuple[int, int]] = []
    sizes, errors = [], []
    with Loader(dataset, OPS, batch=64, seed=2, **settings) as loader:
        while True:
            try:
                batch = loader.next()
            except LibraryError as error:
                errors.append(str(error))
                continue
            if batch is None:
                break
            pairs += list(zip(batch.samples, batch.labels, strict=True))
            sizes.append(len(batch.samples))
        skipped = loader.skipped()
        assert loader.stats().skipped == len(skipped)
    dataset.close()
    return pairs, sizes, errors, skipped


def check_reason(reason: str) -> None:
    assert "class6/0617.jpg" in reason
    assert "sample 617, epoch 0" in reason
    assert "truncated" in reason


def test_raise(folder: Path) -> None:
    pairs, sizes, errors, skipped = collect(folder, on_error=RAISE)
    assert len(errors) == 1
    check_reason(errors[0])
    assert sum(sizes) in (1000 - 64, 960)  # the broken one's batch is missing
    assert all(label == sample // 100 for sample, label in pairs)
    assert skipped == []


@pytest.mark.parametrize("threads", [1, 5])
def test_skip(folder: Path, threads: int) -> None:
    pairs, sizes, errors, skipped = collect(folder, on_error=SKIP, threads=threads)
    assert errors == []
    assert sizes == [64] * 15 + [39]
    assert sorted(sample for sample, _ in pairs) == [i for i in range(1000) if i != 617]
    assert all(label == sample // 100 for sample, label in pairs)
    assert [(epoch, sample) for epoch, sample, _ in skipped] == [(0, 617)]
    check_reason(skipped[0][2])


def test_skip_gives_the_same_batches_with_any_threads(folder: Path) -> None:
    one = collect(folder, on_error=SKIP, last_batch=PAD, threads=1)
    assert collect(folder, on_error=SKIP, last_batch=PAD, threads=7) == one


def test_substitute(folder: Path) -> None:
    pairs, sizes, errors, skipped = collect(folder, on_error=SUBSTITUTE)
    assert errors == []
    assert sum(sizes) == 1000
    expected = sorted(i if i != 617 else 618 for i in range(1000))
    assert sorted(sample for sample, _ in pairs) == expected
    assert all(label == sample // 100 for sample, label in pairs)
    assert [(epoch, sample) for epoch, sample, _ in skipped] == [(0, 617)]
    check_reason(skipped[0][2])


def test_a_file_that_vanishes_after_opening(tmp_path: Path, photos: list[Path]) -> None:
    (tmp_path / "a").mkdir()
    for i in range(5):
        shutil.copy(photos[i], tmp_path / "a" / f"{i}.jpg")
    dataset = Dataset(tmp_path)
    (tmp_path / "a" / "3.jpg").unlink()
    with Loader(dataset, OPS, batch=5) as loader:
        with pytest.raises(LibraryError, match=r"3\.jpg.*No such file") as error:
            loader.next()
        assert str(error.value).count("3.jpg") == 1
        assert loader.next() is None
    dataset.close()
