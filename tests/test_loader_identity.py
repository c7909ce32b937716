# SPDX-License-Identifier: Apache-2.0
"""The same batches whatever the threads, the process and the loop; and torchvision's tensors, given the same draws."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.transforms.functional as F
from library import Batch, Dataset, Loader
from PIL import Image

PHOTO_OPS = "random_resized_crop(96) random_horizontal_flip normalize(imagenet) to(f32,nchw)"
CIFAR_OPS = "random_crop(32,padding=4) random_horizontal_flip normalize(cifar10) to(f32,nchw)"
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CIFAR10 = ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616])
CROP, FLIP = 0, 1

CASES = [("photos", PHOTO_OPS, 24), ("cifar-10-batches-bin", CIFAR_OPS, 100)]


def digest(batch: Batch) -> str:
    text = f"{batch.epoch} {batch.index} {batch.valid} {batch.labels} {batch.samples} {batch.draws}".encode()
    return hashlib.sha256(text + batch.images.tobytes()).hexdigest()


def digests(path: Path, ops: str, batch: int, batches: int, **settings: int) -> list[str]:
    """The first batches of a new loader, over the end of an epoch where it comes."""
    dataset = Dataset(path)
    found: list[str] = []
    with Loader(dataset, ops, batch=batch, seed=5, keep_draws=1, **settings) as loader:
        while len(found) < batches:
            made = loader.next()
            if made is not None:
                found.append(digest(made))
    dataset.close()
    return found


@pytest.fixture(params=CASES, ids=[case[0] for case in CASES])
def case(request: pytest.FixtureRequest, data_dir: Path) -> tuple[Path, str, int]:
    name, ops, batch = request.param
    if not (data_dir / name).exists():
        pytest.skip(f"no data at {data_dir / name}")
    return data_dir / name, ops, batch


def test_one_two_and_seven_threads(case: tuple[Path, str, int], comparisons: Callable[[int], None]) -> None:
    path, ops, batch = case
    expected = digests(path, ops, batch, 12, threads=1)
    assert len(set(expected)) == 12
    for threads in (2, 7):
        assert digests(path, ops, batch, 12, threads=threads) == expected
        comparisons(12)


def test_after_a_break_out_of_the_loop(case: tuple[Path, str, int], comparisons: Callable[[int], None]) -> None:
    path, ops, batch = case
    expected = digests(path, ops, batch, 4, threads=2, first_epoch=3)
    dataset = Dataset(path)
    with Loader(dataset, ops, batch=batch, seed=5, keep_draws=1, threads=3) as loader:
        for _ in range(3):
            loader.next()
        loader.seek(3)
        found = [digest(made) for made in (loader.next() for _ in range(4)) if made is not None]
    dataset.close()
    assert found == expected
    comparisons(4)


def test_another_process(case: tuple[Path, str, int], comparisons: Callable[[int], None]) -> None:
    path, ops, batch = case
    code = (
        "import sys; from pathlib import Path; from test_loader_identity import digests; "
        "print('\\n'.join(digests(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), 5)))"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]]))
    found = subprocess.run(
        [sys.executable, "-c", code, str(path), ops, str(batch)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.stdout.split() == digests(path, ops, batch, 5)
    comparisons(5)


def test_photos_are_torchvisions_tensors(data_dir: Path, comparisons: Callable[[int], None]) -> None:
    path = data_dir / "photos"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    dataset = Dataset(path)
    with Loader(dataset, PHOTO_OPS, batch=25, seed=1, keep_draws=1) as loader:
        for batch in loader.epoch():
            for i, sample in enumerate(batch.samples):
                image = Image.open(dataset.where(sample)).convert("RGB")
                (_, kind, (top, left, height, width)), (_, second, (flipped, *_)) = batch.draws[i]
                assert (kind, second) == (CROP, FLIP)
                image = F.resized_crop(image, top, left, height, width, [96, 96])
                image = F.hflip(image) if flipped else image
                expected = F.normalize(F.to_tensor(image), *IMAGENET)
                assert torch.equal(torch.from_numpy(batch.images[i].copy()), expected), dataset.where(sample)
                comparisons(expected.numel())
    dataset.close()


def test_cifar_is_torchvisions_tensors(data_dir: Path, comparisons: Callable[[int], None]) -> None:
    path = data_dir / "cifar-10-batches-bin"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    files = sorted(path.glob("data_batch_*.bin"))
    records = np.concatenate([np.fromfile(file, dtype=np.uint8).reshape(-1, 3073) for file in files])
    dataset = Dataset(path)
    assert len(dataset) == len(records)
    seen = []
    with Loader(dataset, CIFAR_OPS, batch=200, seed=1, keep_draws=1) as loader:
        for batch in loader.epoch():
            seen += batch.samples
            for i, sample in enumerate(batch.samples[:40]):
                image = Image.fromarray(records[sample, 1:].reshape(3, 32, 32).transpose(1, 2, 0).copy())
                (_, _, (top, left, height, width)), (_, _, (flipped, *_)) = batch.draws[i]
                image = F.crop(F.pad(image, [4]), top, left, height, width)
                image = F.hflip(image) if flipped else image
                expected = F.normalize(F.to_tensor(image), *CIFAR10)
                assert batch.labels[i] == records[sample, 0]
                assert torch.equal(torch.from_numpy(batch.images[i].copy()), expected)
                comparisons(expected.numel())
    dataset.close()
    assert sorted(seen) == list(range(len(records)))


TORCH = {"u8": torch.uint8, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("dtype", list(TORCH))
def test_cifar_in_every_form(
    data_dir: Path, comparisons: Callable[[int], None], dtype: str, layout: str, mode: str
) -> None:
    path = data_dir / "cifar-10-batches-bin"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    files = sorted(path.glob("data_batch_*.bin"))
    records = np.concatenate([np.fromfile(file, dtype=np.uint8).reshape(-1, 3073) for file in files])
    normalize = "" if dtype == "u8" else "normalize(cifar10) "
    ops = f"random_crop((30,37),padding=(3,5),padding_mode={mode}) random_horizontal_flip random_vertical_flip "
    dataset = Dataset(path)
    with Loader(dataset, f"{ops}{normalize}to({dtype},{layout})", batch=64, seed=2, keep_draws=1) as loader:
        batch = loader.next()
    dataset.close()
    for i, sample in enumerate(batch.samples):
        image = Image.fromarray(records[sample, 1:].reshape(3, 32, 32).transpose(1, 2, 0).copy())
        (_, _, (top, left, height, width)), (_, _, (flipped, *_)), (_, _, (turned, *_)) = batch.draws[i]
        image = F.crop(F.pad(image, [3, 5], padding_mode=mode), top, left, height, width)
        image = F.hflip(image) if flipped else image
        image = F.vflip(image) if turned else image
        expected = F.pil_to_tensor(image) if dtype == "u8" else F.normalize(F.to_tensor(image), *CIFAR10)
        expected = (expected.permute(1, 2, 0) if layout == "nhwc" else expected).to(TORCH[dtype]).contiguous()
        assert batch.images[i].tobytes() == expected.view(torch.uint8).numpy().tobytes()
        comparisons(expected.numel())
