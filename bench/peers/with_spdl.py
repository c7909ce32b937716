# SPDX-License-Identifier: Apache-2.0
"""SPDL: its pipeline of threads, FFmpeg's filters for crop, resize and flip."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import spdl.io
from crops import normalized, random_crop, shorter_side
from spdl.pipeline import PipelineBuilder
from works import Work, photo_files

WORKS = {"train", "validate"}


def VERSION() -> str:
    return f"SPDL {version('spdl')}"


def train(file: str) -> object:
    packets = spdl.io.demux_image(file)
    left, top, width, height = random_crop(packets.width, packets.height)
    flip = "hflip," if random.random() < 0.5 else ""
    ops = f"crop={width}:{height}:{left}:{top}:exact=1,scale=224:224:flags=bilinear,{flip}format=pix_fmts=rgb24"
    return spdl.io.decode_packets(packets, filter_desc=ops)


def validate(file: str) -> object:
    packets = spdl.io.demux_image(file)
    width, height = shorter_side(packets.width, packets.height)
    ops = f"scale={width}:{height}:flags=bilinear,crop=224:224,format=pix_fmts=rgb24"
    return spdl.io.decode_packets(packets, filter_desc=ops)


def gathered(frames: list[object]) -> np.ndarray:
    return normalized(spdl.io.to_numpy(spdl.io.convert_frames(frames)))


def endless(files: list[str]) -> Iterator[str]:
    while True:
        random.shuffle(files)
        yield from files


def batches(work: Work, data: Path, scratch: Path, workers: int) -> Iterator[np.ndarray]:
    builder = PipelineBuilder().add_source(endless([str(file) for file in photo_files(data)]))
    builder = builder.pipe(train if work.key == "train" else validate, concurrency=workers)
    pipeline = builder.aggregate(work.batch).pipe(gathered).add_sink(2).build(num_threads=workers + 1)
    with pipeline.auto_stop():
        yield from pipeline


def pixels(data: Path, scratch: Path, count: int) -> np.ndarray:
    frames = [validate(str(file)) for file in photo_files(data)[:count]]
    return spdl.io.to_numpy(spdl.io.convert_frames(frames)).copy()
