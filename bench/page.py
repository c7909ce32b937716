# SPDX-License-Identifier: Apache-2.0
"""Writes docs/benchmarks.md."""

from __future__ import annotations

import platform
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import stoker

if TYPE_CHECKING:
    from compare import Pixels, Result, Session
    from works import Work


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def difference(found: Pixels | str | None) -> str:
    if found is None or isinstance(found, str):
        return "—"
    if found.differing == 0:
        return "yes"
    return f"no: {100 * found.differing:.2g} % differ, by up to {found.largest}"


def cpu_time(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms" if seconds >= 1e-4 else f"{1e6 * seconds:.2f} µs"


def first_batch(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"


def row(result: Result, ours: float, pixels: Pixels | str | None, photos: bool) -> str:
    name = result.peer.name + ("" if result.peer.reads == "original files" else f", {result.peer.reads}")
    if not result.runs:
        return f"| {name} | {result.reason} |" + " |" * (7 if photos else 6)
    rate = result.median("rate")
    ratio = "" if result.peer.key == "stoker" else f"{ours / rate:.1f} ×"
    cells = [
        name,
        f"{rate:,.0f}",
        ratio,
        str(result.workers),
        cpu_time(result.median("cpu")),
        f"{result.median('memory') / 1e6:,.0f} MB",
        first_batch(result.median("first")),
        *([difference(pixels)] if photos else []),
        f"{100 * result.spread:.0f} %",
    ]
    return "| " + " | ".join(cells) + " |"


def table(results: list[Result], pixels: dict[str, Pixels | str]) -> list[str]:
    work = results[0].work
    photos = work.dataset == "photos"
    ours = next(result.median("rate") for result in results if result.peer.key == "stoker")
    lines = [f"## {work.name}", "", f"Batches of {work.batch}: `{work.ops}`", ""]
    same = " pixels equal Pillow's |" if photos else ""
    lines += [
        f"| loader | images/s | Stoker is | workers | CPU time an image | peak memory | first batch |{same} spread |"
    ]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |" + (" --- |" if photos else "") + " ---: |"]
    ordered = sorted(results, key=lambda result: -result.median("rate") if result.runs else 0.0)
    lines += [row(result, ours, pixels.get(result.peer.key), photos) for result in ordered]
    return [*lines, ""]


def own_table(
    threads: dict[str, dict[int, list[dict[str, float]]]], works: dict[str, Work], memset: float
) -> list[str]:
    lines = [
        "## Stoker alone",
        "",
        f"`build/stoker bench`, medians. memset on {stoker.usable_cores()} cores, each over 64 MB of its own,",
        f"in the same run: {memset / 1e9:.1f} GB/s. The ring is the memory that batches lie in; its size can be set.",
        "",
        "| work | 1 thread | 2 threads | ratio | written | of memset | peak memory less the ring | ring |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for key, runs in threads.items():
        one, two = (statistics.median(run["images_per_s"] for run in runs[n]) for n in (1, 2))
        written = two * works[key].bytes
        rest = max(run["peak_rss_bytes"] - run["ring_bytes"] for run in runs[2])
        lines.append(
            f"| {works[key].name} | {one:,.0f} | {two:,.0f} | {two / one:.2f} × | {written / 1e9:.2f} GB/s "
            f"| {100 * written / memset:.0f} % | {rest / 1e6:.0f} MB | {runs[2][0]['ring_bytes'] / 1e6:.0f} MB |"
        )
    return [*lines, ""]


def page(
    results: list[list[Result]],
    pixels: dict[str, Pixels | str],
    threads: dict[str, dict[int, list[dict[str, float]]]],
    session: Session,
    source: str,
    command: str,
) -> str:
    works = {rows[0].work.key: rows[0].work for rows in results}
    peers = {result.peer.key: result.peer for rows in results for result in rows}
    lines = [
        "# Benchmarks",
        "",
        "Written by `bench/compare.py`; not by hand. All loaders in one run over the same files on the same cores,",
        "through a loop that reads a byte of every page of every batch.",
        "",
        "![Images a second](benchmarks.svg)",
        "",
        f"Command: `{command}`",
        "",
        f"Machine: {processor()}, {stoker.usable_cores()} usable cores, instruction set {stoker.cpu()}.",
        f"Data: {source}.",
        "",
        f"Each figure is the median of {session.rounds} interleaved rounds of {session.seconds:g} s, each in a fresh",
        "process; the spread is (largest − smallest) / median of the images/s. Workers are threads or processes,",
        "whichever the loader has: of the numbers in `bench/peers/catalog.py`, the one that was fastest. CPU time and",
        "memory are those of all processes together, Python and its packages among it; memory is PSS, which counts",
        "shared pages once. The first batch is there that long after opening, imports not counted. Pixels: of 64",
        "photos, shorter side to 256, the middle 224 × 224, as uint8, against Pillow and torchvision.",
        "",
    ]
    for rows in results:
        lines += table(rows, pixels)
    lines += own_table(threads, works, statistics.median(session.memset))
    lines += ["## What was run", ""]
    for key, peer in peers.items():
        note = f" ({peer.note})" if peer.note else ""
        lines.append(f"- {peer.name}: {session.versions.get(key, 'did not run')}{note}")
    return "\n".join(lines) + "\n"
