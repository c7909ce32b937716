#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Stoker does, on this machine's own data (`make demo`, `make demo DATA=DIR`).

1. Trains a small network on Fashion-MNIST (or on drawn images where that is not installed), fed by Stoker.
2. Feeds the usual ImageNet pipeline from photos, Stoker beside the PyTorch DataLoader, and compares their tensors
   value by value with the same random draws.
"""

from __future__ import annotations

import argparse
import copy
import os
import subprocess
import sys
import time
from pathlib import Path

import stoker
import torch
import torchvision.datasets
import torchvision.transforms as T
import torchvision.transforms.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import measure  # noqa: E402

FASHION = Path("/usr/share/datasets/fashion-mnist")
IMAGENET = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PHOTO_OPS = "random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)"


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def draw(command: Path, folder: Path, *arguments: str) -> Path:
    """A drawn dataset in `folder`, made once."""
    if not folder.exists():
        making = folder.with_name(folder.name + ".part")
        subprocess.run(["rm", "-rf", making], check=True)
        subprocess.run([command, "sample", making, *arguments], check=True, stdout=subprocess.DEVNULL)
        making.rename(folder)
    return folder


def network(channels: int, size: int, classes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for wide in (16, 32, 64):
        layers += [
            nn.Conv2d(channels, wide, 3, padding=1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        channels = wide
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * (size // 8) ** 2, classes))


@torch.inference_mode()
def accuracy(model: nn.Module, test: stoker.Dataset, ops: str, device: torch.device) -> float:
    model.eval()
    right = 0
    for images, labels in stoker.Loader(test, ops, batch=1000, shuffle=False, epochs=1):
        told = model(torch.from_dlpack(images).to(device)).argmax(1).cpu()
        right += int((told == torch.from_dlpack(labels)).sum())
    model.train()
    return right / len(test)


def epochs_in(seconds: float, model: nn.Module, images: torch.Tensor, batches: int) -> int:
    """How many epochs of training a time has room for on this machine: 2 to 4."""
    model = copy.deepcopy(model)
    for step in range(13):
        if step == 3:  # the first ones are slower
            start = time.perf_counter()
        model(images).square().mean().backward()
    taken = (time.perf_counter() - start) / 10 * batches
    return max(2, min(4, int(seconds / taken)))


def train(folder: Path, name: str, stats: str, epochs: int, seconds: float) -> float:
    """Trains on `folder` for some epochs (0: what a minute or two has room for); the accuracy on its test part."""
    training, test = stoker.Dataset(folder, split="train"), stoker.Dataset(folder, split="test")
    heading(f"1. A small network on {name}: {len(training):,} training images, fed by Stoker")
    ops, test_ops = (f"{extra}normalize({stats}) to(f32,nchw)" for extra in ("random_horizontal_flip ", ""))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    loader = stoker.Loader(training, ops, batch=128, last_batch="drop", seed=0)
    images, _ = next(iter(loader))
    model = network(images.shape[1], images.shape[2], len(training.classes) or 10).to(device)
    epochs = epochs or epochs_in(90, model, torch.from_dlpack(images).to(device), len(loader))
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=epochs * len(loader) + 1)
    result = 0.0
    for epoch in range(epochs):
        start, waited, seen = time.perf_counter(), 0.0, 0
        batches = iter(loader)
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            waited += time.perf_counter() - asked
            if batch is None:
                break
            images, labels = (torch.from_dlpack(part).to(device) for part in batch)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            seen += len(labels)
        taken = time.perf_counter() - start
        result = accuracy(model, test, test_ops, device)
        print(
            f"   epoch {epoch + 1} of {epochs}: {taken:5.1f} s, {seen / taken:8,.0f} images/s, "
            f"{100 * waited / taken:4.1f} % of it spent waiting for data, test accuracy {100 * result:.2f} %",
            flush=True,
        )
    loader.close()

    normalize = {
        "fashion_mnist": T.Normalize((0.2860,), (0.3530,)),
        "cifar10": T.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    }[stats]
    compose = T.Compose([T.RandomHorizontalFlip(), T.ToTensor(), normalize])
    beside(training, ops, measure.RawImages(folder, transform=compose), 128, seconds)
    return result


def beside(
    dataset: stoker.Dataset, ops: str, torch_dataset: torch.utils.data.Dataset, batch: int, seconds: float
) -> None:
    """Prints how fast each side makes batches of the same data on the same cores."""
    cores = stoker.usable_cores()
    theirs = {
        workers: measure.rate(measure.torch_batches(torch_dataset, batch, workers), seconds)
        for workers in sorted({0, 1, cores // 2, cores})
    }
    best = max(theirs, key=lambda workers: theirs[workers])
    ours = measure.rate(measure.stoker_batches(dataset, ops, batch), seconds)
    print(f"   making batches alone, on {cores} cores:")
    print(f"      torchvision + DataLoader {theirs[best]:12,.0f} images/s   (best of 0 to {cores} workers: {best})")
    print(
        f"      Stoker                   {ours:12,.0f} images/s   {ours / theirs[best]:.1f} times as fast", flush=True
    )


def identical(folder: Path, limit: int) -> tuple[int, int]:
    """Replays Stoker's draws in torchvision: how many tensor values are equal, of how many."""
    photos = torchvision.datasets.ImageFolder(str(folder))
    spec = stoker.Spec(PHOTO_OPS)
    equal = total = 0
    seed = 7
    with stoker.Loader(stoker.Dataset(folder), PHOTO_OPS, batch=32, seed=seed, epochs=1) as loader:
        order = iter([int(sample) for sample in loader.order(0)])
        for images, labels in loader:
            for image, label in zip(torch.from_dlpack(images), torch.from_dlpack(labels)):
                sample = next(order)
                photo, true_label = photos[sample]
                assert true_label == int(label), f"sample {sample}: label {int(label)}, not {true_label}"
                crop, flip = spec.draw(seed, 0, sample, photo.width, photo.height)
                top, left, height, width = crop.value
                photo = F.resized_crop(photo, top, left, height, width, [224, 224])
                if flip.value[0]:
                    photo = F.hflip(photo)
                expected = IMAGENET(F.to_tensor(photo))
                equal += int((image.view(torch.int32) == expected.view(torch.int32)).sum())
                total += expected.numel()
            if total >= limit * 3 * 224 * 224:
                break
    return equal, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="photos as an ImageFolder; drawn where none are given")
    parser.add_argument(
        "--epochs", type=int, default=int(os.environ.get("STOKER_DEMO_EPOCHS", 0)), help="0: 2 to 4, as time allows"
    )
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("STOKER_DEMO_SECONDS", 5)))
    options = parser.parse_args()
    build = Path(os.environ.get("STOKER_BUILD") or ROOT / "build")
    command, out = build / "stoker", build / "demo"
    out.mkdir(parents=True, exist_ok=True)
    if options.data is not None and not options.data.is_dir():
        parser.error(f"no such folder: {options.data}")

    if FASHION.is_dir():
        learned = train(FASHION, "Fashion-MNIST", "fashion_mnist", options.epochs, options.seconds)
    else:
        cifar = draw(command, out / "cifar", "--kind", "cifar", "--count", "20000", "--seed", "1")
        learned = train(
            cifar, "drawn images (Fashion-MNIST is not installed)", "cifar10", options.epochs, options.seconds
        )

    drawn = options.data is None
    photos = draw(command, out / "photos", "--count", "400", "--seed", "1") if drawn else options.data
    dataset = stoker.Dataset(photos)
    heading(
        f"2. {len(dataset):,} {'drawn ' if drawn else ''}photos: RandomResizedCrop 224, flip, normalise, to float32"
    )
    compose = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), IMAGENET])
    beside(dataset, PHOTO_OPS, torchvision.datasets.ImageFolder(str(photos), compose), 64, options.seconds)
    equal, total = identical(photos, 256)
    print(f"   with the same random draws: {equal:,} of {total:,} values identical")
    sheet = out / "sheet.png"
    show = [command, "show", photos, "--ops", PHOTO_OPS, "-o", sheet]
    subprocess.run(show, check=True, stdout=subprocess.DEVNULL)
    print(f"   what the network sees: {sheet}\n")
    print(f"Trained to {100 * learned:.2f} % on the test images.")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
