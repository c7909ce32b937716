# SPDX-License-Identifier: Apache-2.0
"""Stoker: one Loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import stoker
from works import WORKS as ALL
from works import Work

WORKS = set(ALL)


def VERSION() -> str:
    return f"stoker {stoker.__version__}"


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    with stoker.Loader(data, work.ops, batch=work.batch, threads=workers) as loader:
        while True:
            for images, _ in loader:
                yield np.from_dlpack(images)


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    ops = "resize(256) center_crop(224) to(u8,nhwc)"
    with stoker.Loader(data, ops, batch=count, shuffle=False) as loader:
        return np.from_dlpack(next(iter(loader))[0]).copy()
