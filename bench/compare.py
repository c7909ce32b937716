#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stoker beside torchvision and the PyTorch DataLoader: images a second, both sides in one run on the same cores.

    make bench                                   all works; writes docs/benchmarks.md
    make bench BENCH_ARGS='--rounds 5 --data DIR'

DIR holds photos/ (an ImageFolder) and cifar-10-batches-bin/; the default is ../shared/data, or drawn images where that
is absent. Each figure is the median of interleaved rounds. DataLoader gets the number of workers that suits it best.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
import stoker
import torch
import torchvision
import torchvision.transforms as T

ROOT = Path(__file__).resolve().parent.parent
IMAGENET = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR = T.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))


@dataclass
class Work:
    name: str
    dataset: str
    ops: str
    compose: T.Compose
    batch: int
    bytes: int  # of one image's tensor


WORKS = [
    Work(
        "photos, train, f32",
        "photos",
        "random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)",
        T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), IMAGENET]),
        64,
        3 * 224 * 224 * 4,
    ),
    Work(
        "photos, validate, f32",
        "photos",
        "resize(256) center_crop(224) normalize(imagenet) to(f32,nchw)",
        T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), IMAGENET]),
        64,
        3 * 224 * 224 * 4,
    ),
    Work(
        "CIFAR-10, train, f32",
        "cifar",
        "random_crop(32,padding=4) random_horizontal_flip normalize(cifar10) to(f32,nchw)",
        T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor(), CIFAR]),
        256,
        3 * 32 * 32 * 4,
    ),
    Work(
        "CIFAR-10, train, u8",
        "cifar",
        "random_crop(32,padding=4) random_horizontal_flip to(u8,nchw)",
        T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.PILToTensor()]),
        256,
        3 * 32 * 32,
    ),
]


def folders(data: Path) -> tuple[dict[str, Path], str]:
    """The photos and CIFAR to run on, and how to call them."""
    if (data / "photos").is_dir():
        return {"photos": data / "photos", "cifar": data / "cifar-10-batches-bin"}, "real photos and CIFAR-10 images"
    build = Path(os.environ.get("STOKER_BUILD") or ROOT / "build")
    drawn = {"photos": build / "bench" / "photos", "cifar": build / "bench" / "cifar"}
    for kind, count in (("photos", 500), ("cifar", 10000)):
        if not drawn[kind].exists():
            drawn[kind].parent.mkdir(parents=True, exist_ok=True)
            kinds = ["--kind", "cifar"] if kind == "cifar" else []
            command = [build / "stoker", "sample", drawn[kind], *kinds, "--count", str(count), "--seed", "1"]
            subprocess.run(command, check=True)
    return drawn, "images drawn by `stoker sample`"


def torch_dataset(work: Work, folder: Path) -> torch.utils.data.Dataset:
    if work.dataset == "photos":
        return torchvision.datasets.ImageFolder(str(folder), work.compose)
    return measure.RawImages(folder, transform=work.compose)


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def run(
    works: list[Work], where: dict[str, Path], rounds: int, seconds: float
) -> tuple[list[dict[str, object]], float]:
    """A row for each work, and memset's bandwidth, the median over the same time."""
    cores = stoker.usable_cores()
    memset: list[float] = []
    rows: list[dict[str, object]] = []
    for work in works:
        theirs_data, ours_data = torch_dataset(work, where[work.dataset]), stoker.Dataset(where[work.dataset])
        ours: list[float] = []
        theirs: dict[int, list[float]] = {workers: [] for workers in sorted({0, 1, max(cores // 2, 1), cores})}
        for turn in range(rounds):
            memset.append(measure.memset_bandwidth(cores))
            for workers, rates in theirs.items():
                rates.append(measure.rate(measure.torch_batches(theirs_data, work.batch, workers), seconds))
            ours.append(measure.rate(measure.stoker_batches(ours_data, work.ops, work.batch), seconds))
            print(f"{work.name}: round {turn + 1} of {rounds}: {ours[-1]:,.0f} images/s", file=sys.stderr, flush=True)
        best = max(theirs, key=lambda workers: statistics.median(theirs[workers]))
        rows.append(
            {
                "work": work,
                "ours": statistics.median(ours),
                "spread": (max(ours) - min(ours)) / statistics.median(ours),
                "theirs": statistics.median(theirs[best]),
                "workers": best,
            }
        )
    return rows, statistics.median(memset)


def page(rows: list[dict[str, object]], source: str, rounds: int, seconds: float, memset: float) -> str:
    cores = stoker.usable_cores()
    lines = [
        "# Benchmarks",
        "",
        "Written by `bench/compare.py`; not by hand. Images a second, both sides in one run over the same data",
        "on the same cores, through a loop that reads a byte of every page of every batch.",
        "",
        f"Command: `make bench BENCH_ARGS='--rounds {rounds} --seconds {seconds:g}'`",
        "",
        f"Machine: {processor()}, {cores} usable cores, instruction set {stoker.cpu()}. Data: {source}.",
        f"Each figure is the median of {rounds} interleaved rounds of {seconds:g} s; the spread is",
        "(largest − smallest) / median.",
        f"Stoker {stoker.__version__}; torch {torch.__version__}, torchvision {torchvision.__version__};",
        f"DataLoader with the best of 0 to {cores} workers.",
        f"memset on {cores} cores: {memset / 1e9:.1f} GB/s.",
        "",
        "| work | torchvision + DataLoader | Stoker | ratio | written, of memset | spread |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        work, ours, theirs = row["work"], row["ours"], row["theirs"]
        assert isinstance(work, Work) and isinstance(ours, float) and isinstance(theirs, float)
        written = ours * work.bytes
        lines.append(
            f"| {work.name} | {theirs:,.0f} ({row['workers']} workers) | {ours:,.0f} | {ours / theirs:.1f} × "
            f"| {written / 1e9:.2f} GB/s, {100 * written / memset:.0f} % | {100 * row['spread']:.0f} % |"  # type: ignore[operator]
        )
    lines += ["", "The works, as specs:", ""]
    lines += [f"- {row['work'].name}, batch {row['work'].batch}: `{row['work'].ops}`" for row in rows]  # type: ignore[attr-defined]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="each side, each round")
    parser.add_argument("--only", default="", help="works whose name holds this")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args()
    where, source = folders(options.data)
    rows, memset = run([work for work in WORKS if options.only in work.name], where, options.rounds, options.seconds)
    text = page(rows, source, options.rounds, options.seconds, memset)
    print(text)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
