#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stoker beside the other loaders of images, all in one run on the same files, cores and batch size.

    make bench                                       all works and peers; writes docs/benchmarks.md and .svg
    make bench BENCH_ARGS='--rounds 5 --data DIR'
    make bench BENCH_ARGS='--works train --peers torchvision,dali --out -'

DIR holds photos/ (an ImageFolder) and cifar-10-batches-bin/; the default is ../shared/data, or drawn images where that
is absent. Every figure is the median of interleaved rounds, each in a fresh process. Each peer has a Python environment
of its own (bench/peers/setup.sh), and gets the number of workers that suits it best. One that cannot be installed or
run becomes a row that says why.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
sys.path.insert(0, str(BENCH / "peers"))

import measure  # noqa: E402
import page  # noqa: E402
import plot  # noqa: E402
import stoker  # noqa: E402
from catalog import Peer, catalog  # noqa: E402
from run import family  # noqa: E402
from works import WORKS, Work  # noqa: E402

SAMPLED = 64  # photos whose pixels are compared
LIMIT = 180  # seconds that one run of a peer may take


@dataclass
class Result:
    """What one peer did on one work."""

    peer: Peer
    work: Work
    workers: int = 0
    runs: list[dict[str, float]] = field(default_factory=list)
    reason: str = ""  # why there are no runs

    def median(self, key: str) -> float:
        return statistics.median(run[key] for run in self.runs)

    @property
    def spread(self) -> float:
        rates = [run["rate"] for run in self.runs]
        return (max(rates) - min(rates)) / statistics.median(rates)


@dataclass
class Pixels:
    differing: float  # share of values
    largest: int


@dataclass
class Session:
    """What all runs share, and what is found out on the way."""

    where: dict[str, Path]
    scratch: Path
    rounds: int
    seconds: float
    pythons: dict[str, Path | str] = field(default_factory=dict)  # of each environment; a str: why there is none
    versions: dict[str, str] = field(default_factory=dict)
    memset: list[float] = field(default_factory=list)


class Failed(Exception):
    pass


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


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


def python_of(session: Session, peer: Peer) -> Path:
    """The Python to run a peer with; makes its environment where there is none."""
    if peer.env == "":
        return Path(sys.executable)
    if peer.env not in session.pythons:
        made = subprocess.run([BENCH / "peers" / "setup.sh", peer.env], capture_output=True, text=True, check=False)
        errors = made.stderr.strip().splitlines() or ["no reason given"]
        session.pythons[peer.env] = (
            Path(made.stdout.strip()) if made.returncode == 0 else f"not installed: {errors[-1]}"
        )
    found = session.pythons[peer.env]
    if isinstance(found, str):
        raise Failed(found)
    return found


def resident(pid: int) -> int:
    """Bytes of a process and all below it, shared pages counted once among those who share them (PSS)."""
    total = 0
    for member in family(pid):
        try:
            for line in Path("/proc", str(member), "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


def run(session: Session, peer: Peer, work: Work, *arguments: str) -> dict[str, float]:
    """One run in a fresh process: what run.py prints, and `memory`, the peak of the whole family's bytes."""
    python = python_of(session, peer)
    command = [python, BENCH / "peers" / "run.py", peer.key, work.key, session.where[work.dataset], session.scratch]
    environment = {key: value for key, value in os.environ.items() if peer.env == "" or key != "PYTHONPATH"}
    peak = [0]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*command, *arguments], stdout=output, stderr=errors, env=environment, start_new_session=True
        )

        def sample() -> None:
            while process.poll() is None:
                peak[0] = max(peak[0], resident(process.pid))
                time.sleep(0.25)

        watcher = threading.Thread(target=sample)
        watcher.start()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            for member in family(process.pid):
                os.kill(member, 9)
            raise Failed(f"did not end within {LIMIT} s") from None
        finally:
            watcher.join()
        output.seek(0)
        errors.seek(0)
        for line in output.read().splitlines():
            if line.startswith("result "):
                found = json.loads(line.removeprefix("result "))
                session.versions[peer.key] = found.pop("version")
                return {**found, "memory": peak[0]}
        reasons = [line.strip() for line in errors.read().splitlines() if line.strip()]
    raise Failed(f"failed: {(reasons or [f'exit status {process.returncode}'])[-1][:200]}")


def best_workers(session: Session, peer: Peer, work: Work) -> int:
    if len(peer.workers) == 1:
        return peer.workers[0]
    seconds = str(min(session.seconds, 2.0))
    rates = {n: run(session, peer, work, "--workers", str(n), "--seconds", seconds)["rate"] for n in peer.workers}
    return max(rates, key=lambda n: rates[n])


def compare(session: Session, work: Work, peers: list[Peer]) -> list[Result]:
    results = [Result(peer, work) for peer in peers if work.key in peer.works]
    for result in results:
        try:
            result.workers = best_workers(session, result.peer, work)
        except Failed as failure:
            result.reason = str(failure)
            say(f"{work.name}: {result.peer.name}: {result.reason}")
    for turn in range(session.rounds):
        session.memset.append(measure.memset_bandwidth(stoker.usable_cores()))
        for result in results:
            if result.reason:
                continue
            arguments = ("--workers", str(result.workers), "--seconds", str(session.seconds))
            try:
                result.runs.append(run(session, result.peer, work, *arguments))
            except Failed as failure:
                result.reason = str(failure)
                continue
            say(f"{work.name}, round {turn + 1}: {result.peer.name}: {result.runs[-1]['rate']:,.0f} images/s")
    return results


def pixels(session: Session, peers: list[Peer]) -> dict[str, Pixels | str]:
    """How each peer's pixels differ from Pillow's and torchvision's on the same photos."""
    found: dict[str, Pixels | str] = {}
    wanted = [peer for peer in peers if "validate" in peer.works]
    reference: np.ndarray | None = None
    for peer in sorted(wanted, key=lambda peer: peer.key != "torchvision"):
        path = session.scratch / f"{peer.key}.npy"
        try:
            run(session, peer, WORKS["validate"], "--pixels", str(path), "--count", str(SAMPLED))
        except Failed as failure:
            found[peer.key] = str(failure)
            continue
        values = np.load(path).astype(np.int16)
        path.unlink()
        if reference is None:
            reference = values
        difference = np.abs(values - reference)
        found[peer.key] = Pixels(float(np.mean(difference != 0)), int(difference.max()))
    return found


def own(where: dict[str, Path], work: Work, rounds: int) -> dict[int, list[dict[str, float]]]:
    """`stoker bench` with one thread and with two."""
    build = Path(os.environ.get("STOKER_BUILD") or ROOT / "build")
    epochs = "12" if work.dataset == "photos" else "300"
    runs: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(rounds):
        for threads, done in runs.items():
            command = [build / "stoker", "bench", where[work.dataset], "--ops", work.ops, "--batch", str(work.batch)]
            command += ["--epochs", epochs, "--threads", str(threads), "--json"]
            done.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="each peer, each round")
    parser.add_argument("--works", default=",".join(WORKS), help="of " + ", ".join(WORKS))
    parser.add_argument("--peers", default="", help="keys of bench/peers/catalog.py (all); Stoker is always there")
    parser.add_argument(
        "--out", default=str(ROOT / "docs" / "benchmarks.md"), help="the page; - for none but the terminal"
    )
    options = parser.parse_args()
    where, source = folders(options.data)
    chosen = options.peers.split(",") if options.peers else []
    peers = [
        peer for peer in catalog(stoker.usable_cores()) if peer.key == "stoker" or not chosen or peer.key in chosen
    ]
    works = [WORKS[key] for key in options.works.split(",")]
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
        session = Session(where, Path(scratch), options.rounds, options.seconds)
        results = [compare(session, work, peers) for work in works]
        differences = pixels(session, peers) if any(work.dataset == "photos" for work in works) else {}
    threads = {work.key: own(where, work, options.rounds) for work in works}
    command = f"make bench BENCH_ARGS='--rounds {options.rounds} --seconds {options.seconds:g}'"
    text = page.page(results, differences, threads, session, source, command)
    if options.out == "-":
        print(text)
        return
    Path(options.out).write_text(text)
    Path(options.out).with_suffix(".svg").write_text(plot.plot(results))
    say(f"written: {options.out} and the plot beside it")


if __name__ == "__main__":
    main()
