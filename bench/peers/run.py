# SPDX-License-Identifier: Apache-2.0
"""Runs one loader once, in that loader's own Python, and prints what was measured as a line of JSON.

    python run.py PEER WORK DATA SCRATCH --workers N --seconds S      throughput
    python run.py PEER WORK DATA SCRATCH --pixels FILE.npy            what its pixels are

A peer is a module with_PEER.py beside this file:

    WORKS      keys of bench/works.py that it can do
    VERSION    a function that gives the versions of what it runs
    prepare    (work, data, scratch) → None: the files that it wants, made once and not timed; may be missing
    batches    (work, data, scratch, workers) → batches without an end, each something NumPy takes
    pixels     (data, scratch, count) → the first `count` photos of the folder, shorter side to 256, the middle
               224 x 224, as uint8, count x 224 x 224 x 3; may be missing
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from works import WORKS

PAGE = 4096
TICK = os.sysconf("SC_CLK_TCK")


def family(root: int) -> list[int]:
    """A process and all below it."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_seconds(root: int) -> float:
    """Spent by a process and all below it, the ended ones among them."""
    ticks = 0
    for pid in family(root):
        try:
            fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(value) for value in fields[11:15])
    return ticks / TICK


def touch(images: object) -> int:
    """Reads a byte of every page; gives the number of images."""
    array = np.asarray(images)
    int(array.reshape(-1).view(np.uint8)[::PAGE].sum(dtype=np.int64))
    return len(array)


def measure(batches: Iterable[object], seconds: float, start: float, warm: int) -> dict[str, float]:
    first = begun = cpu = 0.0
    images = 0
    for number, batch in enumerate(batches):
        count = touch(batch)
        now = time.perf_counter()
        if number == 0:
            first = now - start
        if number < warm or begun == 0.0:
            begun, cpu = now, cpu_seconds(os.getpid())
            continue
        images += count
        if now - begun >= seconds:
            break
    taken = time.perf_counter() - begun
    return {"rate": images / taken, "cpu": (cpu_seconds(os.getpid()) - cpu) / images, "first": first}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("work", choices=sorted(WORKS))
    parser.add_argument("data", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--pixels", type=Path)
    parser.add_argument("--count", type=int, default=64, help="photos whose pixels are compared")
    options = parser.parse_args()
    module = importlib.import_module(f"with_{options.peer}")
    work = WORKS[options.work]
    options.scratch.mkdir(parents=True, exist_ok=True)
    if hasattr(module, "prepare"):
        module.prepare(work, options.data, options.scratch)
    if options.pixels is not None:
        np.save(options.pixels, module.pixels(options.data, options.scratch, options.count))
        found: dict[str, object] = {}
    else:
        warm = 4 if work.dataset == "photos" else 40
        batches = module.batches(work, options.data, options.scratch, options.workers)
        found = measure(batches, options.seconds, time.perf_counter(), warm)
    found["version"] = module.VERSION()
    print("result " + json.dumps(found), flush=True)
    for pid in family(os.getpid())[1:]:  # some leave worker processes behind
        os.kill(pid, signal.SIGKILL)
    os._exit(0)  # and some threads that never end


if __name__ == "__main__":
    main()
