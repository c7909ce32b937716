# SPDX-License-Identifier: Apache-2.0
"""accelerate(): it gives what the DataLoader gives, and refuses by name what it cannot take over."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
import torch
import torchvision
import torchvision.transforms as v1
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)
from torchvision import datasets
from torchvision.transforms import v2
from with_draws import with_draws

dice = np.random.default_rng(7)


def noise(*shape: int) -> NDArray[np.uint8]:
    return dice.integers(0, 256, shape, dtype=np.uint8)


PLAIN = v1.Compose([v1.Resize(24), v1.CenterCrop(20), v1.ToTensor(), v1.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])])
GRAY = v1.Compose([v1.Pad(2), v1.ToTensor(), v1.Normalize((0.1307,), (0.3081,))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ImageFolder of 3 classes and 19 images of many sizes, JPEG and PNG."""
    root = tmp_path_factory.mktemp("folder")
    for number in range(19):
        place = root / ["cat", "dog", "10"][number % 3]
        place.mkdir(exist_ok=True)
        image = Image.fromarray(noise(25 + number, 40 - number, 3)).resize((45 - number, 25 + 2 * number))
        image.save(place / f"{number}.{'png' if number % 4 == 0 else 'jpg'}")
    return root


@pytest.fixture(scope="module")
def cifar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CIFAR-10 and CIFAR-100 as torchvision's downloads unpack them, with few images."""
    root = tmp_path_factory.mktemp("cifar")
    ten, hundred = root / "cifar-10-batches-py", root / "cifar-100-python"
    ten.mkdir()
    hundred.mkdir()

    def write(path: Path, content: dict[str, Any]) -> None:
        path.write_bytes(pickle.dumps(content, protocol=2))

    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        write(ten / name, {"data": noise(4, 3072), "labels": dice.integers(0, 10, 4).tolist()})
    write(ten / "batches.meta", {"label_names": list("abcdefghij")})
    for name, count in [("train", 11), ("test", 5)]:
        fine, coarse = dice.integers(0, 100, count).tolist(), dice.integers(0, 20, count).tolist()
        write(hundred / name, {"data": noise(count, 3072), "fine_labels": fine, "coarse_labels": coarse})
    write(hundred / "meta", {"fine_label_names": [str(i) for i in range(100)]})
    return root


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MNIST and FashionMNIST as torchvision's downloads unpack them, with few images."""
    root = tmp_path_factory.mktemp("mnist")
    for kind in ["MNIST", "FashionMNIST"]:
        raw = root / kind / "raw"
        raw.mkdir(parents=True)
        for part, count in [("train", 13), ("t10k", 6)]:
            images, labels = noise(count, 28, 28), dice.integers(0, 10, count).astype(np.uint8)
            for name, magic, sizes, content in [
                ("images-idx3-ubyte", 2051, images.shape, images),
                ("labels-idx1-ubyte", 2049, labels.shape, labels),
            ]:
                data = struct.pack(f">{len(sizes) + 1}I", magic, *sizes) + content.tobytes()
                (raw / f"{part}-{name}").write_bytes(data)
                (raw / f"{part}-{name}.gz").write_bytes(gzip.compress(data))
    return root


@pytest.fixture(autouse=True)
def no_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)


Made = Callable[[str, Any], Any]


@pytest.fixture
def make(folder: Path, cifar: Path, mnist: Path) -> Made:
    """A dataset by name."""

    def made(name: str, transform: Any) -> Any:
        if name == "ImageFolder":
            return datasets.ImageFolder(str(folder), transform)
        if name.startswith("CIFAR"):
            return getattr(datasets, name.split("-")[0])(cifar, train="test" not in name, transform=transform)
        return getattr(datasets, name.split("-")[0])(mnist, train="test" not in name, transform=transform)

    return made


def same(loader: DataLoader[Any], comparisons: Callable[[int], None], **options: Any) -> Any:
    """Compares two epochs with the DataLoader's; its sampler must be sequential and its transforms not random."""
    fast = stoker.accelerate(loader, **options)
    assert len(fast) == len(loader)
    for _ in range(2):
        right, got = list(loader), list(fast)
        assert len(got) == len(right)
        for theirs, mine in zip(right, got, strict=True):
            assert type(mine) is type(theirs) is list
            assert len(mine) == len(theirs) == 2
            for a, b in zip(theirs, mine, strict=True):
                assert type(b) is torch.Tensor
                assert b.dtype == a.dtype
                assert b.shape == a.shape
                assert torch.equal(a, b)
            comparisons(len(theirs[0]))
    return fast


ALL = ["ImageFolder", "CIFAR10", "CIFAR10-test", "CIFAR100", "CIFAR100-test"]
ALL_GRAY = ["MNIST", "MNIST-test", "FashionMNIST", "FashionMNIST-test"]


@pytest.mark.parametrize("name", ALL + ALL_GRAY)
@pytest.mark.parametrize("drop_last", [False, True])
def test_every_dataset(make: Made, name: str, drop_last: bool, comparisons: Callable[[int], None]) -> None:
    transform = GRAY if name in ALL_GRAY else PLAIN
    same(DataLoader(make(name, transform), batch_size=4, drop_last=drop_last), comparisons)


@pytest.mark.parametrize("name", ["ImageFolder", "CIFAR10", "MNIST"])
@pytest.mark.parametrize(
    "transform",
    [
        v2.Compose(
            [v2.Resize((17, 19)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.2])]
        ),
        v1.Compose([v1.CenterCrop(21), v1.PILToTensor()]),
        v2.Compose([v2.RGB(), v2.CenterCrop(21), v2.ToImage(), v2.ToPureTensor()]),
        v1.Compose([v1.Grayscale(3), v1.Resize((9, 8)), v1.ToTensor()]),
    ],
    ids=["v2", "uint8", "rgb", "grayscale"],
)
def test_other_transforms(make: Made, name: str, transform: Any, comparisons: Callable[[int], None]) -> None:
    same(DataLoader(make(name, transform), batch_size=5), comparisons)


def test_imagenet_reads_its_own_part(tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    for part in ["train", "val"]:
        for wnid in ["n01", "n02"]:
            (tmp_path / part / wnid).mkdir(parents=True)
            Image.fromarray(noise(30, 30, 3)).save(tmp_path / part / wnid / "a.JPEG")
    torch.save(({"n01": ("one",), "n02": ("two",)}, ["n01", "n02"]), tmp_path / "meta.bin")
    for part in ["train", "val"]:
        same(DataLoader(datasets.ImageNet(tmp_path, part, transform=PLAIN), batch_size=2), comparisons)


def test_subset_and_concat_in_one_another(make: Made, comparisons: Callable[[int], None]) -> None:
    one, ten, hundred = make("ImageFolder", PLAIN), make("CIFAR10", PLAIN), make("CIFAR100", PLAIN)
    inner = ConcatDataset([Subset(one, [3, 1, 1, 18, -1]), ten])
    dataset = ConcatDataset([Subset(inner, range(2, 12, 2)), hundred, Subset(Subset(hundred, [4, 3, 2]), [2, 0])])
    same(DataLoader(dataset, batch_size=4), comparisons)
    parts = random_split(one, [12, 7], torch.Generator().manual_seed(1))
    same(DataLoader(parts[1], batch_size=4), comparisons)


def test_concat_of_gray_datasets(make: Made, comparisons: Callable[[int], None]) -> None:
    dataset = ConcatDataset([make("MNIST", GRAY), make("FashionMNIST", GRAY)])
    same(DataLoader(dataset, batch_size=8), comparisons)


def test_target_transform_is_looked_up(folder: Path, comparisons: Callable[[int], None]) -> None:
    one = datasets.ImageFolder(folder, PLAIN, target_transform=lambda label: 100 - 7 * label)
    two = datasets.ImageFolder(folder, PLAIN, target_transform=lambda label: np.int64(-label))
    three = datasets.ImageFolder(folder, PLAIN)
    same(DataLoader(Subset(ConcatDataset([one, two, three]), range(0, 57, 5)), batch_size=3), comparisons)
    loader = DataLoader(one, batch_size=19, sampler=SubsetRandomSampler([4, 8, 15]))
    [(_, labels)] = stoker.accelerate(loader)
    assert sorted(labels.tolist()) == sorted(100 - 7 * one.targets[i] for i in [4, 8, 15])


def test_filtered_and_changed_lists_of_samples(folder: Path, comparisons: Callable[[int], None]) -> None:
    only_png = datasets.ImageFolder(folder, PLAIN, is_valid_file=lambda path: path.endswith(".png"))
    assert len(only_png) == 5
    same(DataLoader(only_png, batch_size=2), comparisons)
    changed = datasets.ImageFolder(folder, PLAIN)
    changed.samples = [*changed.samples[::-2], changed.samples[3], changed.samples[3]]
    same(DataLoader(changed, batch_size=4), comparisons)


def replayed(fast: Any, dataset: Any, epoch: int) -> Iterator[tuple[torch.Tensor, int, int]]:
    """The samples of an epoch: torchvision's transforms with Stoker's order and draws."""
    for sample in fast.loader.order(epoch):
        path_or_pixels, label = (
            dataset.samples[sample] if hasattr(dataset, "samples") else (dataset.data[sample], dataset.targets[sample])
        )
        image = (
            dataset.loader(path_or_pixels)
            if hasattr(dataset, "samples")
            else Image.fromarray(np.asarray(path_or_pixels))
        )
        draws = fast.loader.spec.draw(fast.seed, epoch, sample, *image.size)
        left = iter(draws)
        result = with_draws(dataset.transform, left)(image)
        assert next(left, None) is None
        yield result, int(label), int(sample)


RANDOM = v1.Compose(
    [v1.RandomResizedCrop(16), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize([0.5] * 3, [0.25] * 3)]
)
RANDOM_V2 = v2.Compose(
    [
        v2.RandomCrop(28, padding=[1, 2, 3, 4], pad_if_needed=True),
        v2.RandomVerticalFlip(0.3),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
    ]
)


@pytest.mark.parametrize("name", ["ImageFolder", "CIFAR100", "MNIST"])
@pytest.mark.parametrize("transform", [RANDOM, RANDOM_V2], ids=["v1", "v2"])
def test_random_transforms_in_random_order(
    make: Made, name: str, transform: Any, comparisons: Callable[[int], None]
) -> None:
    if name == "MNIST" and transform is RANDOM:
        transform = v1.Compose([*RANDOM.transforms[:3]])
    dataset = make(name, transform)
    fast = stoker.accelerate(DataLoader(dataset, batch_size=4, shuffle=True))
    orders = []
    for epoch in range(3):
        images, labels = (torch.cat(part) for part in zip(*fast, strict=True))
        right = list(replayed(fast, dataset, epoch))
        assert torch.equal(images, torch.stack([image for image, _, _ in right]))
        assert labels.tolist() == [label for _, label, _ in right]
        orders.append([sample for _, _, sample in right])
        assert sorted(orders[-1]) == list(range(len(dataset)))
        comparisons(len(right))
    assert orders[0] != orders[1] != orders[2] != orders[0]


def test_random_sampler_gives_the_same_samples(make: Made, comparisons: Callable[[int], None]) -> None:
    dataset = make("CIFAR10", v1.PILToTensor())

    def multiset(batches: Any) -> list[tuple[int, bytes]]:
        return sorted(
            (int(label), bytes(image.numpy()))
            for some, labels in batches
            for image, label in zip(some, labels, strict=True)
        )

    loader = DataLoader(dataset, batch_size=3, shuffle=True)
    fast = stoker.accelerate(loader)
    assert multiset(fast) == multiset(loader)
    comparisons(len(dataset))
    wanted = [1, 5, 7, 11, 13, -1]
    some = stoker.accelerate(DataLoader(dataset, batch_size=4, sampler=SubsetRandomSampler(wanted)))
    assert len(some) == 2
    for _ in range(2):
        assert multiset(some) == multiset(DataLoader(Subset(dataset, wanted), batch_size=4))
        comparisons(len(wanted))


def test_manual_seed_makes_it_reproducible(make: Made) -> None:
    dataset = make("CIFAR10", RANDOM)

    def first(generator: torch.Generator | None = None) -> torch.Tensor:
        loader = DataLoader(dataset, batch_size=20, shuffle=True, generator=generator)
        return next(iter(stoker.accelerate(loader)))[0].clone()

    torch.manual_seed(3)
    one, other = first(), first()
    torch.manual_seed(3)
    assert torch.equal(first(), one)
    assert not torch.equal(one, other)
    assert torch.equal(first(torch.Generator().manual_seed(5)), first(torch.Generator().manual_seed(5)))
    # Of a sampler that has a generator of its own, too.
    samplers = [RandomSampler(dataset, generator=torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)]
    seeds = [stoker.accelerate(DataLoader(dataset, batch_size=20, sampler=sampler)).seed for sampler in samplers]
    assert seeds[0] == seeds[1] != seeds[2]
    loader = DataLoader(dataset, batch_size=20, shuffle=True)
    fast = stoker.accelerate(loader, seed=11)
    assert fast.seed == 11
    assert torch.equal(next(iter(fast))[0], next(iter(stoker.accelerate(loader, seed=11)))[0])


def test_set_epoch_and_leaving_the_loop(make: Made) -> None:
    fast = stoker.accelerate(DataLoader(make("CIFAR10", v1.PILToTensor()), batch_size=4, shuffle=True), seed=1)
    epochs = [torch.cat([labels for _, labels in fast]) for _ in range(2)]
    for _ in fast:
        break
    fast.set_epoch(1)
    assert torch.equal(torch.cat([labels for _, labels in fast]), epochs[1])
    assert fast.stats()["samples"] > 40
    fast.close()
    with pytest.raises(ValueError, match="closed"):
        list(fast)


def test_batches_may_be_kept_and_changed(make: Made, comparisons: Callable[[int], None]) -> None:
    loader = DataLoader(make("CIFAR10", PLAIN), batch_size=1)
    fast = stoker.accelerate(loader)
    kept = list(fast)
    for (mine, _), (theirs, _) in zip(kept, loader, strict=True):
        assert torch.equal(mine, theirs)
        mine.zero_()
    for (mine, _), (theirs, _) in zip(fast, loader, strict=True):
        assert torch.equal(mine, theirs)
    comparisons(40)


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without CUDA")
def test_pin_memory_without_cuda_is_no_error(make: Made, comparisons: Callable[[int], None]) -> None:
    dataset = make("CIFAR10", PLAIN)
    fast = stoker.accelerate(DataLoader(dataset, batch_size=4, pin_memory=True))
    assert fast.pin_memory is False
    for mine, theirs in zip(fast, DataLoader(dataset, batch_size=4), strict=True):
        assert torch.equal(mine[0], theirs[0])
        comparisons(4)


def invert(image: Image.Image) -> Image.Image:
    return Image.eval(image, lambda value: 255 - value)


@pytest.mark.parametrize("name", ["ImageFolder", "CIFAR10", "MNIST"])
@pytest.mark.parametrize(
    "transform",
    [
        v1.Compose([v1.Resize((20, 22)), invert, v1.ToTensor()]),
        v1.Compose([v1.Resize((20, 22)), v1.ToTensor(), v1.Lambda(lambda x: x.mul_(2) - 1)]),
        v1.Compose(
            [v1.Resize((20, 22)), v1.PILToTensor(), lambda x: x.roll(1, 1), v1.ConvertImageDtype(torch.float16)]
        ),
        v1.Compose([invert, v1.Resize(25), v1.CenterCrop(20), v1.ToTensor()]),
        v1.Compose([v1.ToTensor(), v1.Resize((11, 12))]),
    ],
    ids=["pil", "float", "uint8", "first", "resize of tensors"],
)
@pytest.mark.parametrize("drop_last", [False, True])
def test_fallback_runs_the_rest_in_python(
    make: Made, name: str, transform: Any, drop_last: bool, comparisons: Callable[[int], None]
) -> None:
    loader = DataLoader(make(name, transform), batch_size=4, drop_last=drop_last)
    with pytest.raises(stoker.NotAccelerated):
        stoker.accelerate(loader)
    fast = same(loader, comparisons, fallback=True)
    assert len(fast.rest) > 0


def test_fallback_with_a_target_transform(folder: Path, comparisons: Callable[[int], None]) -> None:
    dataset = datasets.ImageFolder(folder, v1.Compose([invert, PLAIN]), target_transform=lambda label: 5 - label)
    same(DataLoader(dataset, batch_size=4), comparisons, fallback=True)


class MyFolder(datasets.ImageFolder):
    """May do anything."""


class MyDataset(Dataset[Any]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(3), index


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([1, 2])


def my_collate(batch: Any) -> Any:
    return batch


def refusal(loader: Any, *words: str, **options: Any) -> stoker.NotAccelerated:
    with pytest.raises(stoker.NotAccelerated) as caught:
        stoker.accelerate(loader, **options)
    assert isinstance(caught.value, NotImplementedError)
    assert caught.value.reasons
    for word in words:
        assert any(word in reason for reason in caught.value.reasons), caught.value.reasons
        assert word in str(caught.value)
    return caught.value


def test_refused_loaders_are_named(make: Made, folder: Path) -> None:
    plain = make("ImageFolder", PLAIN)
    refusal([1, 2], "list")
    refusal(plain, "ImageFolder is not")
    refusal(DataLoader(Stream()), "Stream")
    refusal(DataLoader(MyDataset()), "MyDataset")
    refusal(DataLoader(MyFolder(folder, PLAIN)), "MyFolder")
    refusal(DataLoader(plain, batch_size=None), "batch_size=None")
    refusal(DataLoader(plain, collate_fn=my_collate), "my_collate")
    refusal(DataLoader(plain, batch_sampler=[[1, 2], [3]]), "batch sampler list")
    refusal(DataLoader(plain, sampler=[1, 2]), "sampler list")
    refusal(DataLoader(plain, sampler=WeightedRandomSampler([1.0] * 19, 19)), "WeightedRandomSampler")
    refusal(DataLoader(plain, sampler=RandomSampler(plain, replacement=True)), "replacement")
    refusal(DataLoader(plain, sampler=RandomSampler(plain, num_samples=5)), "5 of 19")
    refusal(DataLoader(plain, batch_size=None, collate_fn=my_collate), "batch_size=None", "my_collate")
    refusal(
        DataLoader(plain, batch_sampler=BatchSampler(SequentialSampler(plain), 4, False)), "batch sampler BatchSampler"
    )


def test_refused_datasets_are_named(make: Made, folder: Path, tmp_path: Path) -> None:
    refusal(DataLoader(datasets.FakeData(transform=PLAIN)), "FakeData")
    refusal(DataLoader(datasets.ImageFolder(folder, PLAIN, loader=Image.open)), "loader open")
    refusal(DataLoader(make("ImageFolder", None)), "do not end in a tensor")
    refusal(DataLoader(make("ImageFolder", v1.Resize(8))), "do not end in a tensor")
    refusal(
        DataLoader(ConcatDataset([make("CIFAR10", PLAIN), make("CIFAR100", v1.ToTensor())])), "different transforms"
    )
    refusal(DataLoader(ConcatDataset([make("CIFAR10", GRAY), make("MNIST", GRAY)])), "gray and of RGB")
    refusal(DataLoader(ConcatDataset([MyDataset(), datasets.FakeData()])), "MyDataset", "FakeData")
    refusal(DataLoader(Subset(make("CIFAR10", PLAIN), [])), "without samples")
    changed = make("CIFAR10", PLAIN)
    changed.targets = changed.targets[:3]
    refusal(DataLoader(changed), "images and labels of shape (3,)")
    changed = make("CIFAR10", PLAIN)
    changed.data = changed.data.astype(np.float32)
    refusal(DataLoader(changed), "CIFAR10: images are uint8")
    refusal(DataLoader(make("CIFAR10", PLAIN), sampler=SubsetRandomSampler([])), "without samples")
    (tmp_path / "a").mkdir()
    for kind in ["bmp", "png", "TIFF"]:
        Image.fromarray(noise(8, 8, 3)).save(tmp_path / "a" / f"c.{kind}")
    refusal(DataLoader(datasets.ImageFolder(tmp_path, PLAIN)), ".bmp, .tiff")
    outside = make("ImageFolder", PLAIN)
    Image.fromarray(noise(8, 8, 3)).save(tmp_path / "b.png")
    outside.samples.append((str(tmp_path / "b.png"), 0))
    refusal(DataLoader(outside), "b.png")
    retargeted = make("ImageFolder", PLAIN)
    retargeted.samples[0] = (retargeted.samples[0][0], 2)
    refusal(DataLoader(retargeted), "target 2")
    for changed, name in [(lambda label: [label], "list"), (float, "float"), (lambda label: label > 1, "bool")]:
        dataset = datasets.ImageFolder(folder, PLAIN, target_transform=changed)
        refusal(DataLoader(dataset), name)
        refusal(DataLoader(dataset), name, fallback=True)
    joint = make("ImageFolder", PLAIN)
    joint.transforms = my_collate
    refusal(DataLoader(joint), "joint transforms")


def test_refused_transforms_are_named_with_their_place(make: Made) -> None:
    jitter = v1.Compose([v1.RandomResizedCrop(20), v1.ColorJitter(0.1), v1.ToTensor()])
    refusal(DataLoader(make("CIFAR10", jitter)), "ColorJitter", "position 1")
    refusal(DataLoader(make("CIFAR10", v1.Compose([v1.ToTensor(), v1.RandomErasing()]))), "RandomErasing", "position 1")
    refusal(DataLoader(make("CIFAR10", lambda image: v1.functional.to_tensor(image))), "<lambda>", "position 0")


def test_image_backends_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(datasets.ImageFolder(folder, PLAIN))
    monkeypatch.setattr(torchvision, "_image_backend", "accimage")
    refusal(loader, "accimage")
