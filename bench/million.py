#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opening an ImageFolder of a million files: without an index, with one, and what `find` takes to list it.

    PYTHONPATH=build/python build/env/bin/python bench/million.py [--files N] [--folder DIR]

Makes N small JPEG files in 1,000 classes (about 4 GB of disk) in a folder of its own and removes them afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPEN = """
import json, resource, sys, time
import stoker
start = time.perf_counter()
dataset = stoker.Dataset(sys.argv[1])
opened = time.perf_counter()
with stoker.Loader(dataset, "resize((8,8)) to(u8,nchw)", batch=64) as loader:
    next(iter(loader))
    batch = time.perf_counter()
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([len(dataset), opened - start, batch - opened, peak]))
"""


def make(folder: Path, files: int) -> None:
    subprocess.run([ROOT / "build" / "stoker", "sample", folder / "one", "--count", "1", "--size", "16x16"], check=True)
    data = next((folder / "one").glob("*/*")).read_bytes()
    shutil.rmtree(folder / "one")
    for c in range(1000):
        (folder / f"class_{c:04}").mkdir()
    for i in range(files):
        with open(folder / f"class_{i % 1000:04}" / f"{i:07}.jpg", "wb", buffering=0) as file:
            file.write(data)


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def open_once(folder: Path, cache: Path) -> list[float]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", OPEN, folder], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to make them (the system's temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-million-", dir=options.folder) as name:
        folder, cache = Path(name) / "data", Path(name) / "cache"
        folder.mkdir()
        start = time.perf_counter()
        make(folder, options.files)
        print(f"{options.files:,} files made in {time.perf_counter() - start:.0f} s", flush=True)
        time.sleep(4)  # a folder that has just changed is not indexed: docs/datasets.md
        find = ["find", str(folder), "-type", "f"]
        seconds(find)  # into the caches, for all that follows
        listed, first, second = [], [], []
        for _ in range(3):
            listed.append(seconds(find))
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
            first.append(open_once(folder, cache))
            second.append(open_once(folder, cache))
        assert {run[0] for run in first + second} == {options.files}
        print(f"find, once: {statistics.median(listed):.2f} s")
        for what, runs in (("no index", first), ("index there", second)):
            opened, batch, peak = (statistics.median(run[i] for run in runs) for i in (1, 2, 3))
            print(f"{what}: open {1e3 * opened:.1f} ms, first batch {1e3 * batch:.1f} ms later, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
