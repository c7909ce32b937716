#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains MobileNetV2, ResNet-18 or ResNet-50 over an ImageFolder, fed by Stoker or by torchvision and the DataLoader.

    python examples/imagenet.py --data DIR [--model resnet50] [--loader stoker|torch] [--epochs 90] [--batch 256]
    torchrun --nproc-per-node 2 examples/imagenet.py --data DIR …

DIR holds train/ and val/, or class folders alone: then every tenth image is kept to validate with. Under torchrun each
process trains on its own share of the epoch's order, and validates its own share, no image twice.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import stoker
import torch
import torch.distributed as dist
import torchvision
import torchvision.transforms as T
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TRAIN = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
VALIDATE = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), T.Normalize(MEAN, STD)])


class Ranks:
    """This process among those that torchrun started; one alone without it."""

    def __init__(self) -> None:
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        local = int(os.environ.get("LOCAL_RANK", 0))
        self.device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if "RANK" in os.environ:
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")

    def total(self, values: Tensor) -> Tensor:
        if dist.is_initialized():
            dist.all_reduce(values)
        return values


def parts(data: Path) -> tuple[Path, Path, bool]:
    """Where training and validation images lie, and whether one folder serves both."""
    whole = not (data / "train").is_dir()
    return (data, data, True) if whole else (data / "train", data / "val", False)


def kept(count: int, whole: bool, validate: bool) -> range | list[int]:
    """The samples of a part: all of them, or its share of a folder that serves both."""
    if not whole:
        return range(count)
    return range(0, count, 10) if validate else [i for i in range(count) if i % 10]


def same_classes(validation: list[str], training: list[str]) -> None:
    """A class missing from one side would shift the labels of all that follow it."""
    if validation != training:
        raise SystemExit("train/ and val/ do not hold the same classes: the labels would not mean the same")


class StokerFeed:
    def __init__(self, options: argparse.Namespace, ranks: Ranks) -> None:
        train, val, whole = parts(options.data)
        self.options, self.ranks = options, ranks
        base = stoker.Dataset(train)
        train_classes = list(base.classes)
        self.classes = len(train_classes)
        self.dataset = base.subset(list(kept(len(base), whole, False))) if whole else base
        base = stoker.Dataset(val)
        same_classes(list(base.classes), train_classes)
        share = list(kept(len(base), whole, True))[ranks.rank :: ranks.world]
        self.validation = base.subset(share)
        self.orders = stoker.Loader(self.dataset, batch=1, seed=options.seed, threads=1)

    def train(self, epoch: int) -> Iterable[tuple[Tensor, Tensor]]:
        # Each rank takes every world-th sample of the epoch's order; what does not divide evenly is left out.
        order = self.orders.order(epoch)
        order = order[: len(order) // self.ranks.world * self.ranks.world][self.ranks.rank :: self.ranks.world]
        return stoker.Loader(
            self.dataset,
            TRAIN,
            batch=self.options.batch,
            seed=self.options.seed,
            shuffle=False,
            order=order,
            first_epoch=epoch,
            epochs=1,
            threads=self.options.workers,
            last_batch="drop" if len(order) >= self.options.batch else "partial",
        )

    def validate(self) -> Iterable[tuple[Tensor, Tensor]]:
        return stoker.Loader(
            self.validation,
            VALIDATE,
            batch=self.options.batch,
            shuffle=False,
            epochs=1,
            threads=self.options.workers,
        )


class TorchFeed:
    def __init__(self, options: argparse.Namespace, ranks: Ranks) -> None:
        train, val, whole = parts(options.data)
        self.options, self.ranks = options, ranks
        base = torchvision.datasets.ImageFolder(str(train), TRAIN)
        train_classes = base.classes
        self.classes = len(train_classes)
        self.dataset = Subset(base, kept(len(base), whole, False))
        base = torchvision.datasets.ImageFolder(str(val), VALIDATE)
        same_classes(base.classes, train_classes)
        self.validation = Subset(base, list(kept(len(base), whole, True))[ranks.rank :: ranks.world])
        self.sampler = DistributedSampler(
            self.dataset, ranks.world, ranks.rank, shuffle=True, seed=options.seed, drop_last=True
        )

    def loader(self, dataset: Dataset, drop_last: bool, sampler: DistributedSampler | None = None) -> DataLoader:
        return DataLoader(
            dataset,
            self.options.batch,
            sampler=sampler,
            num_workers=self.options.workers,
            drop_last=drop_last,
            pin_memory=self.ranks.device.type == "cuda",
        )

    def train(self, epoch: int) -> Iterable[tuple[Tensor, Tensor]]:
        self.sampler.set_epoch(epoch)
        return self.loader(self.dataset, len(self.sampler) >= self.options.batch, self.sampler)

    def validate(self) -> Iterable[tuple[Tensor, Tensor]]:
        return self.loader(self.validation, False)


class Clock:
    """Passes batches on as torch tensors and adds up the time that the loop waited for them."""

    def __init__(self) -> None:
        self.waited = 0.0

    def batches(self, source: Iterable[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
        iterator = iter(source)
        while True:
            start = time.perf_counter()
            batch = next(iterator, None)
            self.waited += time.perf_counter() - start
            if batch is None:
                return
            yield torch.from_dlpack(batch[0]), torch.from_dlpack(batch[1])


@torch.inference_mode()
def validate(model: nn.Module, feed: StokerFeed | TorchFeed, ranks: Ranks) -> tuple[float, int]:
    """Top-1 accuracy over all ranks' shares, and the number of images."""
    model.eval()
    counts = torch.zeros(2, dtype=torch.int64, device=ranks.device)
    for images, labels in Clock().batches(feed.validate()):
        told = model(images.to(ranks.device, non_blocking=True)).argmax(1)
        counts += torch.tensor([int((told.cpu() == labels).sum()), len(labels)], device=ranks.device)
    model.train()
    right, total = ranks.total(counts).tolist()
    return right / max(total, 1), total


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", choices=("mobilenet_v2", "resnet18", "resnet50"), default="resnet50")
    parser.add_argument("--loader", choices=("stoker", "torch"), default="stoker")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch", type=int, default=256, help="images a process")
    parser.add_argument("--steps", type=int, default=0, help="steps an epoch at most (0: all)")
    parser.add_argument("--lr", type=float, default=0.1, help="for 256 images a step; scaled to the real number")
    parser.add_argument("--workers", type=int, default=0, help="threads or processes a rank; 0: its share of the cores")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    options = parse()
    ranks = Ranks()
    options.workers = options.workers or max(1, stoker.usable_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    torch.manual_seed(options.seed)
    feed = (StokerFeed if options.loader == "stoker" else TorchFeed)(options, ranks)
    model: nn.Module = torchvision.models.get_model(options.model, num_classes=feed.classes)
    model = model.to(ranks.device, memory_format=torch.channels_last)
    trained = DistributedDataParallel(model) if dist.is_initialized() else model
    rate = options.lr * options.batch * ranks.world / 256
    optimizer = torch.optim.SGD(trained.parameters(), rate, momentum=0.9, weight_decay=1e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    mixed = ranks.device.type == "cuda"

    for epoch in range(options.epochs):
        clock, start, seen, loss = Clock(), time.perf_counter(), 0, torch.zeros(())
        for step, (images, labels) in enumerate(clock.batches(feed.train(epoch))):
            images = images.to(ranks.device, memory_format=torch.channels_last, non_blocking=True)
            labels = labels.to(ranks.device, non_blocking=True)
            with torch.autocast(ranks.device.type, torch.bfloat16, enabled=mixed):
                loss = nn.functional.cross_entropy(trained(images), labels, label_smoothing=0.1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            seen += len(labels)
            if options.steps and step + 1 >= options.steps:
                break
        last = loss.item()  # also waits for the GPU
        seconds = time.perf_counter() - start
        schedule.step()
        accuracy, total = validate(model, feed, ranks)
        images_seen = int(ranks.total(torch.tensor([seen], device=ranks.device)).item())
        if ranks.rank == 0:
            print(
                f"epoch {epoch + 1}: loss {last:.4f}, {images_seen / seconds:,.1f} images/s, "
                f"{100 * clock.waited / seconds:.1f} % of the time spent waiting for data, "
                f"accuracy {100 * accuracy:.2f} % of {total:,} images",
                flush=True,
            )
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
