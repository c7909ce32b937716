#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains VGG-16 with batch norm on CIFAR-10, fed by Stoker or by torchvision and the PyTorch DataLoader.

    python examples/cifar_vgg.py --data DIR [--loader stoker|torch] [--epochs 10] [--batch 128]

DIR holds CIFAR-10 in its binary layout (data_batch_1.bin …). With `--loader torch --replay` torchvision works with
Stoker's order and Stoker's random draws; the tensors are then the same bits, and so is the loss of every step:

    python examples/cifar_vgg.py --data DIR --epochs 1 --loader stoker         --losses a.json
    python examples/cifar_vgg.py --data DIR --epochs 1 --loader torch --replay --losses b.json
    cmp a.json b.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import stoker
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as F
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
NORMALIZE = f"normalize({MEAN},{STD})"
TRAIN = f"random_crop(32,padding=4) random_horizontal_flip {NORMALIZE} to(f32,nchw)"
TEST = f"{NORMALIZE} to(f32,nchw)"


def vgg16(classes: int, width: float) -> nn.Sequential:
    """The 13 convolutions of VGG-16, each with batch norm, and one linear layer, as is usual at 32 × 32."""
    layers: list[nn.Module] = []
    channels = 3
    for step in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if step == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        wide = max(4, int(step * width))
        layers += [nn.Conv2d(channels, wide, 3, padding=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(inplace=True)]
        channels = wide
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, classes))


class CifarBinary(Dataset):
    """The binary layout as torchvision would have it: PIL images through a transform."""

    def __init__(self, folder: Path, pattern: str, transform: T.Compose | None = None) -> None:
        records = np.concatenate([np.fromfile(f, np.uint8).reshape(-1, 3073) for f in sorted(folder.glob(pattern))])
        self.labels = records[:, 0].astype(np.int64)
        self.images = np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = Image.fromarray(self.images[index])
        return (self.transform(image) if self.transform else image), int(self.labels[index])


class Replay(CifarBinary):
    """Torchvision at work with the draws that Stoker makes for (seed, epoch, sample)."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, "data_batch_*.bin")
        self.spec, self.seed, self.epoch = stoker.Spec(TRAIN), seed, 0

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = F.pad(Image.fromarray(self.images[index]), [4])
        crop, flip = self.spec.draw(self.seed, self.epoch, index, 32, 32)
        image = F.crop(image, *crop.value)
        if flip.value[0]:
            image = F.hflip(image)
        return F.normalize(F.to_tensor(image), MEAN, STD), int(self.labels[index])


class Feed:
    """The batches of each epoch, and the time that the loop waited for them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.waited = 0.0
        if options.loader == "stoker" or options.replay:
            self.loader = stoker.Loader(
                stoker.Dataset(options.data, split="train"),
                TRAIN,
                batch=options.batch,
                seed=options.seed,
                last_batch="drop",
                threads=options.workers,
            )

    def torch_batches(self, epoch: int) -> DataLoader:
        options = self.options
        if options.replay:
            replay = Replay(options.data, options.seed)
            replay.epoch = epoch
            order = [int(i) for i in self.loader.order(epoch)]
            return DataLoader(replay, options.batch, sampler=order, drop_last=True, num_workers=options.workers)
        compose = [T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
        dataset = CifarBinary(options.data, "data_batch_*.bin", T.Compose(compose))
        return DataLoader(dataset, options.batch, shuffle=True, drop_last=True, num_workers=options.workers)

    def epoch(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        batches = iter(self.loader if self.options.loader == "stoker" else self.torch_batches(epoch))
        while True:
            start = time.perf_counter()
            try:
                images, labels = next(batches)
            except StopIteration:
                return
            self.waited += time.perf_counter() - start
            yield torch.from_dlpack(images), torch.from_dlpack(labels)


@torch.inference_mode()
def accuracy(model: nn.Module, data: Path, device: torch.device) -> float:
    """The share of the test records that the model tells right; Stoker feeds them."""
    model.eval()
    right = total = 0
    for images, labels in stoker.Loader(stoker.Dataset(data, split="test"), TEST, batch=500, shuffle=False, epochs=1):
        told = model(torch.from_dlpack(images).to(device)).argmax(1).cpu()
        right += int((told == torch.from_dlpack(labels)).sum())
        total += len(told)
    model.train()
    return right / total


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with data_batch_*.bin and test_batch.bin")
    parser.add_argument("--loader", choices=("stoker", "torch"), default="stoker")
    parser.add_argument("--replay", action="store_true", help="with --loader torch: Stoker's order and draws")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps (0: none)")
    parser.add_argument("--width", type=float, default=1.0, help="shrinks every layer")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=stoker.usable_cores(), help="threads or processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amp", choices=("none", "bf16", "f16"), help="default: bf16 on a GPU, else none")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--losses", type=Path, help="write the loss of every step here, as JSON")
    return parser.parse_args()


def main() -> None:
    options = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    amp = options.amp or ("bf16" if device.type == "cuda" else "none")
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True, warn_only=device.type == "cuda")
    torch.backends.cudnn.benchmark = False

    memory = torch.channels_last if options.channels_last else torch.contiguous_format
    model = vgg16(10, options.width).to(device, memory_format=memory)
    feed = Feed(options)
    steps = options.epochs * len(CifarBinary(options.data, "data_batch_*.bin")) // options.batch
    optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, total_steps=max(steps, 1) + 1)
    scaler = torch.amp.GradScaler(device.type, enabled=amp == "f16")
    half = {"bf16": torch.bfloat16, "f16": torch.float16}.get(amp)

    losses: list[float] = []
    for epoch in range(options.epochs):
        start, feed.waited, seen = time.perf_counter(), 0.0, 0
        for images, labels in feed.epoch(epoch):
            images = images.to(device, memory_format=memory, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, half, enabled=half is not None):
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            losses.append(loss.item())
            seen += len(labels)
            if options.steps and len(losses) >= options.steps:
                break
        seconds = time.perf_counter() - start
        print(
            f"epoch {epoch + 1}: loss {losses[-1]:.4f}, {seen / seconds:,.0f} images/s, "
            f"{100 * feed.waited / seconds:.1f} % of the time spent waiting for data, "
            f"test accuracy {100 * accuracy(model, options.data, device):.2f} %",
            flush=True,
        )
        if options.steps and len(losses) >= options.steps:
            break
    if options.losses:
        options.losses.write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
