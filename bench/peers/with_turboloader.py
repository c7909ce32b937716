# SPDX-License-Identifier: Apache-2.0
"""TurboLoader over a tar of the original files, its fused pass as in its README."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import turboloader
from works import COPIES, Work, photo_files

WORKS = {"train"}  # it resizes to a given width and height only, so there is no Resize(256) to validate with


def VERSION() -> str:
    return f"TurboLoader {version('turboloader')}"


def prepare(work: Work, data: Path, scratch: Path) -> None:
    archive = scratch / "photos.tar"
    if not archive.exists():
        with tarfile.open(archive, "w") as tar:
            for copy in range(COPIES):
                for file in photo_files(data):
                    tar.add(file, arcname=f"{copy}_{file.parent.name}_{file.name}")


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    loader = turboloader.DataLoader(
        str(scratch / "photos.tar"),
        batch_size=work.batch,
        num_workers=workers,
        image_size=224,
        output_format="pytorch",
        transform=turboloader.ImageNetNormalize(),
        shuffle=True,
        train_aug=True,
        drop_last=True,
    )
    while True:
        for images, _ in loader:
            yield images
