# SPDX-License-Identifier: Apache-2.0
"""accelerate(): a loader in place of a torch.utils.data.DataLoader that is there already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._compose import Taken, split_torchvision
from ._core import SettingError, StokerError
from ._dataset import Dataset
from ._loader import Loader
from ._spec import Spec


class NotAccelerated(StokerError, NotImplementedError):
    """What Stoker cannot take over; `reasons` names each thing."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons
        super().__init__("cannot take over this DataLoader: " + "; ".join(reasons))


class _Leaf(NamedTuple):
    """A dataset without Subset and ConcatDataset around it."""

    dataset: Dataset
    transform: Any
    target_transform: Any


class _Tree(NamedTuple):
    """The samples of a whole dataset in order, and the leaves they come from."""

    dataset: Dataset
    leaves: list[_Leaf]
    leaf_of: NDArray[np.int64]  # number of the leaf of each sample


def accelerate(loader: Any, *, fallback: bool = False, threads: int = 0, seed: int | None = None) -> Accelerated:
    """Takes over a ``torch.utils.data.DataLoader`` and gives back a loader that behaves the same in the loop.

    It must run over torchvision's ImageFolder, ImageNet, CIFAR10, CIFAR100, MNIST or FashionMNIST, also inside Subset
    and ConcatDataset, with transforms that a spec can express, target transforms that depend on the label alone, a
    random or sequential sampler, and the default collate function. Batch size, drop_last and pin_memory are taken
    along. The pixels are torchvision's; the order and the draws are Stoker's own, reproducible by `seed`.

    :param fallback: transforms that cannot be taken over, and all after them, run in Python after Stoker's part.
    :param threads: 0: as many as this process may use cores.
    :param seed: of order and draws; None: taken from the generator of the DataLoader or of its sampler, or torch's
        default one, so that ``torch.manual_seed`` makes it reproducible.
    :raises NotAccelerated: naming all that cannot be taken over.
    """
    reasons: list[str] = []
    _check_loader(loader, reasons)
    if reasons:
        raise NotAccelerated(reasons)
    shuffle, indices = _read_sampler(loader.sampler, loader.dataset, reasons)
    tree = _read_dataset(loader.dataset, reasons)
    if tree is None or reasons:
        raise NotAccelerated(reasons)
    taken = _read_transforms(tree, reasons, fallback)
    labels = _read_labels(tree, reasons)
    if reasons or taken is None:
        raise NotAccelerated(reasons)
    dataset = tree.dataset
    if len(dataset) == 0 or (indices is not None and len(indices) == 0):
        raise NotAccelerated(["a dataset without samples"])
    if seed is None:
        own_generator = loader.generator if loader.generator is not None else getattr(loader.sampler, "generator", None)
        seed = _draw_seed(own_generator)
    if indices is not None:
        dataset = dataset.subset(indices)
        labels = labels[indices] if labels is not None else None
    return Accelerated(loader, dataset, taken, labels, shuffle, threads, seed)


def _check_loader(loader: Any, reasons: list[str]) -> None:
    from torch.utils.data import BatchSampler, DataLoader, IterableDataset, default_collate

    if not isinstance(loader, DataLoader):
        reasons.append(f"a {type(loader).__name__} is not a torch.utils.data.DataLoader")
        return
    if isinstance(loader.dataset, IterableDataset):
        reasons.append(f"the iterable dataset {type(loader.dataset).__name__}")
    if loader.batch_size is None or type(loader.batch_sampler) is not BatchSampler:
        sampler = loader.batch_sampler
        reasons.append("batch_size=None" if sampler is None else f"the batch sampler {type(sampler).__name__}")
    if loader.collate_fn is not default_collate:
        reasons.append(f"the collate function {getattr(loader.collate_fn, '__name__', loader.collate_fn)}")


def _read_sampler(sampler: Any, dataset: Any, reasons: list[str]) -> tuple[bool, NDArray[np.int64] | None]:
    """Whether the order is shuffled, and the samples that the sampler is limited to."""
    from torch.utils.data import RandomSampler, SequentialSampler, SubsetRandomSampler

    if type(sampler) is SequentialSampler:
        return False, None
    if type(sampler) is SubsetRandomSampler:
        return True, _counted_from_the_end(sampler.indices, len(dataset))
    if type(sampler) is RandomSampler:
        if sampler.replacement:
            reasons.append("RandomSampler with replacement")
        elif sampler.num_samples != len(dataset):
            reasons.append(f"RandomSampler of {sampler.num_samples} of {len(dataset)} samples")
        return True, None
    reasons.append(f"the sampler {type(sampler).__name__}")
    return False, None


def _counted_from_the_end(indices: Any, size: int) -> NDArray[np.int64]:
    """Indices as an array, negative ones made positive."""
    numbers = np.asarray(indices, dtype=np.int64)
    return np.where(numbers < 0, numbers + size, numbers)


def _read_dataset(dataset: Any, reasons: list[str]) -> _Tree | None:
    from torch.utils.data import ConcatDataset, Subset

    if type(dataset) is Subset:
        tree = _read_dataset(dataset.dataset, reasons)
        if tree is None:
            return None
        indices = _counted_from_the_end(dataset.indices, len(tree.dataset))
        return _Tree(tree.dataset.subset(indices), tree.leaves, tree.leaf_of[indices])
    if type(dataset) is ConcatDataset:
        trees = [_read_dataset(part, reasons) for part in dataset.datasets]
        parts = [tree for tree in trees if tree is not None]
        if len(parts) < len(trees):
            return None
        if len({part.dataset.channels for part in parts}) > 1:
            reasons.append("a ConcatDataset of gray and of RGB datasets")
            return None
        leaves: list[_Leaf] = []
        numbers = []
        for part in parts:
            numbers.append(part.leaf_of + len(leaves))
            leaves.extend(part.leaves)
        return _Tree(Dataset.concat([part.dataset for part in parts]), leaves, np.concatenate(numbers))
    leaf = _read_leaf(dataset, reasons)
    if leaf is None:
        return None
    return _Tree(leaf.dataset, [leaf], np.zeros(len(leaf.dataset), dtype=np.int64))


def _read_leaf(dataset: Any, reasons: list[str]) -> _Leaf | None:
    from torchvision import datasets
    from torchvision.datasets.vision import StandardTransform

    kind = type(dataset)
    name = kind.__name__
    transforms = getattr(dataset, "transforms", None)
    if transforms is not None and type(transforms) is not StandardTransform:
        reasons.append(f"{name} with joint transforms of image and target ({type(transforms).__name__})")
    if kind in (datasets.ImageFolder, datasets.ImageNet):
        own = _read_folder(dataset, reasons)
    elif kind in (datasets.CIFAR10, datasets.CIFAR100, datasets.MNIST, datasets.FashionMNIST):
        # CIFAR's data is a view of planes, which is copied here; MNIST's is taken as it is.
        images = np.ascontiguousarray(dataset.data)
        targets = np.asarray(dataset.targets)
        try:
            own = Dataset.from_arrays(images, targets if targets.size > 0 else targets.astype(np.int64))
        except SettingError as error:  # data or targets were changed
            reasons.append(f"{name}: {error}")
            return None
    else:
        reasons.append(f"the dataset {name}")
        return None
    if own is None:
        return None
    return _Leaf(own, dataset.transform, dataset.target_transform)


_NOT_DECODED = {".ppm", ".bmp", ".pgm", ".tif", ".tiff"}  # of the names that torchvision takes for images


def _read_folder(dataset: Any, reasons: list[str]) -> Dataset | None:
    import torchvision
    from torchvision.datasets.folder import default_loader

    if dataset.loader is not default_loader:
        reasons.append(
            f"{type(dataset).__name__} with the loader {getattr(dataset.loader, '__name__', dataset.loader)}"
        )
        return None
    if torchvision.get_image_backend() != "PIL":
        reasons.append(f"torchvision's image backend {torchvision.get_image_backend()}")
        return None
    # An ImageNet's root holds the parts; its part is an ImageFolder.
    kinds = sorted({os.path.splitext(path)[1].lower() for path, _ in dataset.samples} & _NOT_DECODED)
    if kinds:
        reasons.append(f"{type(dataset).__name__} with images of the kind {', '.join(kinds)}")
        return None
    own = Dataset(os.fspath(getattr(dataset, "split_folder", dataset.root)))
    if own.format != "imagefolder":
        reasons.append(f"{dataset.root}, which Stoker takes for {own.format}")
        return None
    # The list of samples is what counts: it may have been filtered or changed after it was made.
    places = [own.where(i) for i in range(len(own))]
    labels = own.labels.tolist()
    if list(zip(places, labels, strict=True)) == dataset.samples:
        return own
    numbers = {os.path.normpath(place): i for i, place in enumerate(places)}
    order = []
    for path, target in dataset.samples:
        number = numbers.get(os.path.normpath(path))
        if number is None:
            reasons.append(
                f"{type(dataset).__name__} with the sample {path}, which lies outside its root's class folders"
            )
            return None
        if labels[number] != target:
            reasons.append(f"{type(dataset).__name__} with the changed target {target} of {path}")
            return None
        order.append(number)
    return own if order == list(range(len(own))) else own.subset(order)


def _read_transforms(tree: _Tree, reasons: list[str], fallback: bool) -> Taken | None:
    takens = [split_torchvision(leaf.transform, leaf.dataset.channels) for leaf in tree.leaves]
    first = takens[0]
    if any(taken.text != first.text or taken.rest != first.rest for taken in takens):
        reasons.append("datasets of a ConcatDataset with different transforms")
        return None
    if first.rest and not fallback:
        reasons.extend(sorted({taken.reason for taken in takens}))
        return None
    if not first.rest and first.state == "pil":
        reasons.append("transforms that do not end in a tensor (there is no ToTensor, PILToTensor or ToImage)")
        return None
    return first


def _read_labels(tree: _Tree, reasons: list[str]) -> NDArray[np.int64] | None:
    """The label of each sample where target transforms change it; None: as the dataset has them."""
    if all(leaf.target_transform is None for leaf in tree.leaves):
        return None
    labels = tree.dataset.labels
    out = labels.copy()
    for number, leaf in enumerate(tree.leaves):
        if leaf.target_transform is None:
            continue
        mine = tree.leaf_of == number
        for label in np.unique(labels[mine]):
            changed = leaf.target_transform(int(label))
            if isinstance(changed, bool) or not isinstance(changed, (int, np.int64)):
                reasons.append(f"a target transform that gives {type(changed).__name__}, not int")
                return None
            out[mine & (labels == label)] = int(changed)
    return out


def _draw_seed(generator: Any) -> int:
    import torch

    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


class Accelerated:
    """What `accelerate` gives: iterate it as the DataLoader. `loader` is the stoker.Loader inside."""

    def __init__(
        self,
        original: Any,
        dataset: Dataset,
        taken: Taken,
        labels: NDArray[np.int64] | None,
        shuffle: bool,
        threads: int,
        seed: int,
    ) -> None:
        import torch

        self.dataset = original.dataset
        self.batch_size: int = original.batch_size
        self.drop_last: bool = original.drop_last
        self.pin_memory: bool = original.pin_memory and torch.cuda.is_available()
        self.seed = seed
        self.rest = taken.rest
        self._state = taken.state
        self._labels = torch.from_numpy(labels) if labels is not None else None
        self._count = len(dataset)
        text = taken.text
        if self.rest and self._state == "pil":
            text = f"{text} to(u8,nhwc)"
        self.loader = Loader(
            dataset,
            Spec(text),
            # Samples may differ in size until Python's part has run.
            batch=1 if self.rest else self.batch_size,
            shuffle=shuffle,
            seed=seed,
            threads=threads,
            last_batch="drop" if self.drop_last and not self.rest else "partial",
            output="torch",
        )

    def __len__(self) -> int:
        whole, part = divmod(self._count, self.batch_size)
        return whole + (1 if part and not self.drop_last else 0)

    def __iter__(self) -> Iterator[list[Any]]:
        batches = self._with_rest() if self.rest else self._whole()
        for images, labels in batches:
            yield [images.pin_memory(), labels.pin_memory()] if self.pin_memory else [images, labels]

    def _whole(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.loader.batches():
            yield batch.images, batch.labels if self._labels is None else self._labels[batch.samples]

    def _with_rest(self) -> Iterator[tuple[Any, Any]]:
        """Stoker's part a sample, Python's transforms on it, and torch's collate function."""
        from torch.utils.data import default_collate

        samples: list[tuple[Any, int]] = []
        for batch in self.loader.batches():
            label = batch.labels[0] if self._labels is None else self._labels[batch.samples[0]]
            samples.append((self._finish(batch.images[0]), int(label)))
            if len(samples) == self.batch_size:
                yield tuple(default_collate(samples))
                samples = []
        if samples and not self.drop_last:
            yield tuple(default_collate(samples))

    def _finish(self, image: Any) -> Any:
        if self._state == "pil":
            from PIL import Image

            pixels = image.numpy()
            image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        else:
            image = image.clone()  # Python's transforms may keep or change it
        for step in self.rest:
            image = step(image)
        return image

    def set_epoch(self, epoch: int) -> None:
        """The next iteration runs `epoch`; not needed in a plain loop."""
        self.loader.set_epoch(epoch)

    def stats(self) -> dict[str, Any]:
        """Of the stoker.Loader inside."""
        return self.loader.stats()

    def close(self) -> None:
        """Stops the threads."""
        self.loader.close()
