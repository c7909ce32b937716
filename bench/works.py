# SPDX-License-Identifier: Apache-2.0
"""The works that are compared. Every peer's Python reads this file, so it needs nothing but the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@dataclass(frozen=True)
class Work:
    key: str
    name: str
    dataset: str  # "photos": an ImageFolder; "cifar": CIFAR-10's binary files
    ops: str  # as a spec of Stoker's
    batch: int
    bytes: int  # of one image's tensor


WORKS = {
    work.key: work
    for work in (
        Work(
            "train",
            "photos, train, f32",
            "photos",
            "random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)",
            64,
            3 * 224 * 224 * 4,
        ),
        Work(
            "validate",
            "photos, validate, f32",
            "photos",
            "resize(256) center_crop(224) normalize(imagenet) to(f32,nchw)",
            64,
            3 * 224 * 224 * 4,
        ),
        Work(
            "cifar-f32",
            "CIFAR-10, train, f32",
            "cifar",
            "random_crop(32,padding=4) random_horizontal_flip normalize(cifar10) to(f32,nchw)",
            256,
            3 * 32 * 32 * 4,
        ),
        Work(
            "cifar-u8",
            "CIFAR-10, train, u8",
            "cifar",
            "random_crop(32,padding=4) random_horizontal_flip to(u8,nchw)",
            256,
            3 * 32 * 32,
        ),
    )
}


def photo_files(folder: Path) -> list[Path]:
    """The ImageFolder's files in its order."""
    return sorted(path for path in folder.glob("*/*") if path.suffix.lower() in {".jpg", ".jpeg"})


COPIES = (
    4  # of each photo, in the formats that hold a dataset in one file: so that an epoch is not over after 7 batches
)
