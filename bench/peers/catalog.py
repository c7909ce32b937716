# SPDX-License-Identifier: Apache-2.0
"""Who is compared: names, what each reads, and the numbers of workers that are tried."""

from __future__ import annotations

from dataclasses import dataclass

ORIGINAL, OTHER = "original files", "its own format"


@dataclass(frozen=True)
class Peer:
    key: str  # of with_KEY.py
    name: str
    env: str  # of the Python environment: "" is the project's own
    works: tuple[str, ...]
    workers: tuple[int, ...]
    reads: str = ORIGINAL
    note: str = ""


PHOTOS, ALL = ("train", "validate"), ("train", "validate", "cifar-f32", "cifar-u8")


def catalog(cores: int) -> list[Peer]:
    processes = tuple(sorted({0, 1, max(cores // 2, 1), cores}))
    threads = tuple(sorted({cores, 2 * cores}))
    numba = tuple(sorted({max(cores // 2, 1), cores}))  # takes no more threads than cores
    return [
        Peer("stoker", "Stoker", "", ALL, (cores,)),
        Peer("torchvision", "torchvision + DataLoader (PIL)", "", ALL, processes),
        Peer("torchvision_v2", "torchvision v2 + DataLoader (tensors)", "", ALL, processes),
        Peer("dali", "NVIDIA DALI (CPU)", "dali", PHOTOS, threads),
        Peer("spdl", "SPDL", "spdl", PHOTOS, threads, note="crops and resizes by FFmpeg's filters"),
        Peer(
            "turboloader",
            "TurboLoader",
            "turboloader",
            ("train",),
            threads,
            note="reads the files from a tar; has no resize of the shorter side, so no validation",
        ),
        Peer(
            "tfdata", "tf.data", "tfdata", ALL, threads, note="resizes without antialiasing, as its ImageNet recipes do"
        ),
        Peer("grain", "Grain", "grain", PHOTOS, processes, note="decodes and resizes by Pillow"),
        Peer("ffcv", "FFCV (JPEG)", "ffcv", PHOTOS, numba, OTHER, note="holds the photos re-encoded"),
        Peer("ffcv_raw", "FFCV (raw)", "ffcv", ALL, numba, OTHER, note="holds pixels"),
    ]
