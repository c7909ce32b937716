# SPDX-License-Identifier: Apache-2.0
"""Memory over ten thousand batches, over epochs, and over loaders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from library import SKIP, Dataset, LibraryError, Loader

CIFAR_OPS = "random_crop(32,padding=4) random_horizontal_flip normalize(cifar10) to(f32,nchw)"


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_ten_thousand_batches(data_dir: Path) -> None:
    path = data_dir / "cifar-10-batches-bin"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    dataset = Dataset(path)
    with Loader(dataset, CIFAR_OPS, batch=32, seed=1) as loader:
        made = 0
        before = 0
        while made < 10_500:
            made += loader.advance()
            if made == 500 and before == 0:  # the whole file has been touched, and each thread has its buffers
                before = resident()
        assert resident() - before < 4 << 20
    dataset.close()


def test_hundreds_of_decoding_errors(tmp_path: Path, photos: list[Path]) -> None:
    """Decoders leave by longjmp: nothing may stay behind (vision #9383)."""
    (tmp_path / "a").mkdir()
    data = min(photos, key=lambda photo: photo.stat().st_size).read_bytes()
    (tmp_path / "a" / "sound.jpg").write_bytes(data)
    for i in range(49):
        (tmp_path / "a" / f"{i}.jpg").write_bytes(data[: len(data) * (i + 1) // 60])
    dataset = Dataset(tmp_path)
    with Loader(dataset, "center_crop(16)", batch=10, on_error=SKIP) as loader:
        before = 0
        for epoch in range(60):
            while loader.advance():
                pass
            if epoch == 20:
                before = resident()
        assert loader.stats().skipped >= 60 * 40
        assert resident() - before < 4 << 20
    dataset.close()


def test_hundred_loaders_on_photos(photos: list[Path]) -> None:
    dataset = Dataset(photos[0].parent.parent)

    def round_trip() -> None:
        with Loader(dataset, "random_resized_crop(64) to(f32,nchw)", batch=4, threads=3) as loader:
            loader.advance()

    for _ in range(10):
        round_trip()
    threads, files, before = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), resident()
    for _ in range(100):
        round_trip()
    assert len(os.listdir("/proc/self/task")) == threads
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - before < 8 << 20
    dataset.close()


def test_a_batch_beyond_the_budget_is_refused_by_name(photos: list[Path]) -> None:
    dataset = Dataset(photos[0].parent.parent)
    with pytest.raises(LibraryError, match="ring_bytes"):
        Loader(dataset, "random_resized_crop(224) to(f32,nchw)", batch=400, ring_bytes=1 << 20)
    dataset.close()
