# SPDX-License-Identifier: Apache-2.0
"""The examples run, and one trains to the same losses whether Stoker or torchvision feeds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT


def run(*command: object, **environment: str) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def cifar(stoker_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """True CIFAR-10 pixels where they are at hand, drawn ones otherwise."""
    from conftest import DATA

    real = DATA / "cifar-10-real-bin"
    if real.is_dir():
        return real
    folder = tmp_path_factory.mktemp("examples") / "cifar"
    run(stoker_command, "sample", folder, "--kind", "cifar", "--count", 1200, "--seed", 3)
    return folder


@pytest.fixture(scope="module")
def drawn_photos(stoker_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "photos"
    run(stoker_command, "sample", folder, "--count", 40, "--seed", 3)
    return folder


def test_same_loss_at_every_step_with_either_loader(
    cifar: Path, tmp_path: Path, comparisons: Callable[[int], None]
) -> None:
    losses = []
    for loader in (["stoker"], ["torch", "--replay"]):
        out = tmp_path / f"{loader[0]}.json"
        vgg = ROOT / "examples" / "cifar_vgg.py"
        options = ["--epochs", 2, "--batch", 128, "--width", 0.0625, "--steps", 34, "--workers", 1, "--seed", 5]
        text = run(sys.executable, vgg, "--data", cifar, "--loader", *loader, *options, "--losses", out)
        assert "images/s" in text and "waiting for data" in text
        losses.append(json.loads(out.read_text()))
    assert len(losses[0]) >= 15 and len(set(losses[0])) > 10
    assert losses[0] == losses[1]
    comparisons(len(losses[0]))


@pytest.mark.parametrize("loader", ["stoker", "torch"])
def test_imagenet_trains_and_validates(drawn_photos: Path, loader: str) -> None:
    text = run(
        sys.executable,
        ROOT / "examples" / "imagenet.py",
        *("--data", drawn_photos, "--model", "resnet18", "--loader", loader),
        *("--epochs", 1, "--batch", 8, "--steps", 2, "--workers", 1),
    )
    assert "of 4 images" in text and "waiting for data" in text


def test_imagenet_on_two_ranks(drawn_photos: Path) -> None:
    text = run(
        sys.executable,
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2),
        ROOT / "examples" / "imagenet.py",
        *("--data", drawn_photos, "--model", "mobilenet_v2", "--epochs", 2, "--batch", 6, "--steps", 2, "--workers", 1),
    )
    assert text.count("of 4 images") == 2  # every validation image once, whichever rank it is on


def test_feed_c_says_what_it_fed(build_dir: Path, drawn_photos: Path) -> None:
    programs = [file for file in (build_dir / "examples").rglob("feed") if file.is_file()]
    assert programs, "examples/feed was not built"
    assert "40" in run(programs[0], drawn_photos)
