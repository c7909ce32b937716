# SPDX-License-Identifier: Apache-2.0
"""The loader: batches, epoch after epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

from . import _stoker
from ._compose import spec_text
from ._core import Output, SettingError, address_of, chosen_output, hand_over, unsigned, whole_numbers
from ._dataset import Dataset
from ._spec import Draw, Spec

LAST_BATCH = {"partial": 0, "drop": 1, "pad": 2}
ON_ERROR = {"raise": 0, "skip": 1, "substitute": 2}


class Batch(NamedTuple):
    """One batch with all that is known of it.

    `images`: N x C x H x W or N x H x W x C; `labels` and `samples` (numbers in the dataset): int64, N. `draws` holds
    each sample's draws if the loader keeps them. Samples from `valid` on are repeats that fill the last batch under
    last_batch="pad".
    """

    images: Any
    labels: Any
    samples: Any
    draws: list[list[Draw]] | None
    epoch: int
    index: int
    valid: int


def _choice(name: str, value: str, choices: dict[str, int]) -> int:
    if value not in choices:
        raise SettingError(f"{name}={value!r}: one of {', '.join(choices)} is possible")
    return choices[value]


class Loader:
    """Reads, decodes, augments and batches a dataset with C threads, ahead of the loop.

        for images, labels in stoker.Loader("photos", "random_resized_crop(224) normalize(imagenet)", batch=64):
            ...

    Each iteration is one epoch; the next one is the next epoch, with another order and other draws. Leaving an
    iteration early and iterating again goes to the beginning of the next epoch. What sample comes when, and with
    which draws, depends on `seed`, the epoch and the position alone: threads change nothing.

    :param dataset: a Dataset, a path, or arrays as (images, labels).
    :param ops: a spec as text, a Spec, a list of stoker transforms, or a torchvision Compose.
    :param batch: samples a batch.
    :param shuffle: a new order each epoch; False: the dataset's order.
    :param threads: 0: as many as this process may use cores.
    :param last_batch: "partial", "drop" or "pad" (filled with the epoch's first samples again).
    :param on_error: "raise", "skip" (batches stay full, the epoch ends earlier) or "substitute" (by the next readable
        sample).
    :param epochs: how many epochs will be asked for, so that nothing is made ahead after them; 0: no limit.
    :param depth: batches made ahead; 0: chosen within `ring_bytes` (0: 512 MB).
    :param stall_seconds: StallError when nothing came for so long; 0: wait for ever.
    :param order: an explicit order of sample numbers, the same each epoch; needs shuffle=False or leaves shuffle out.
    :param draws: keep the draws of each sample in Batch.draws.
    :param output: "torch", "numpy", "dlpack", or "auto": torch where the program has imported it, else numpy. No
        copies: the batch's memory returns to the loader when the last tensor over it dies.
    """

    def __init__(
        self,
        dataset: Dataset | str | os.PathLike[str] | tuple[Any, Any],
        ops: Any = None,
        batch: int = 64,
        *,
        shuffle: bool | None = None,
        seed: int = 0,
        threads: int = 0,
        last_batch: Literal["partial", "drop", "pad"] = "partial",
        on_error: Literal["raise", "skip", "substitute"] = "raise",
        first_epoch: int = 0,
        epochs: int = 0,
        depth: int = 0,
        ring_bytes: int = 0,
        stall_seconds: int = 300,
        order: Sequence[int] | NDArray[Any] | None = None,
        draws: bool = False,
        output: Output = "auto",
    ) -> None:
        if isinstance(dataset, tuple):
            dataset = Dataset.from_arrays(*dataset)
        elif not isinstance(dataset, Dataset):
            dataset = Dataset(dataset)
        if order is not None and shuffle:
            raise SettingError("an explicit order and shuffle=True contradict one another")
        chosen_output(output)
        numbers = whole_numbers("order", order) if order is not None else None
        self.dataset = dataset
        self.spec = Spec(spec_text(ops, dataset.channels))
        self.batch_size = batch
        self._output = output
        self._epoch = unsigned("first_epoch", first_epoch)  # that the next iteration runs
        self._running = 0  # counts iterations, so that an old iterator notices a newer one
        self._handle = _stoker.open_loader(
            dataset._handle,
            self.spec.text,
            batch,
            threads,
            shuffle is not False and order is None,
            unsigned("seed", seed),
            self._epoch,
            epochs,
            _choice("last_batch", last_batch, LAST_BATCH),
            _choice("on_error", on_error, ON_ERROR),
            depth,
            stall_seconds,
            ring_bytes,
            draws,
            address_of(numbers) if numbers is not None else 0,
            len(numbers) if numbers is not None else 0,
        )

    def __len__(self) -> int:
        """Batches in a full epoch; skipped samples may make it fewer."""
        return self._handle.batches()

    @property
    def samples(self) -> int:
        """Samples in an epoch."""
        return self._handle.samples()

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next iteration runs."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration runs `epoch`. Not needed in a plain loop: the loader advances by itself."""
        self._epoch = unsigned("epoch", epoch)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return _Pairs(self)

    def batches(self) -> Iterator[Batch]:
        """One epoch of Batch objects."""
        output = chosen_output(self._output)
        for images, labels, samples, draws, epoch, number, valid in _Epoch(self):
            yield Batch(
                hand_over(images, output),
                hand_over(labels, output),
                hand_over(samples, output),
                None if draws is None else [[Draw.from_raw(raw) for raw in one] for one in draws],
                epoch,
                number,
                valid,
            )

    def order(self, epoch: int, first: int = 0, count: int | None = None) -> NDArray[np.int64]:
        """Sample numbers of `epoch` in order, positions `first` .. `first + count`."""
        if count is None:
            count = max(self.samples - first, 0)
        out = np.empty(count, dtype=np.int64)
        self._handle.order(unsigned("epoch", epoch), first, count, address_of(out))
        return out

    def stats(self) -> dict[str, Any]:
        """What was delivered, and where the time went: seconds and bytes a stage, since the loader was opened."""
        return self._handle.stats()

    def skipped(self) -> list[tuple[int, int, str]]:
        """(sample, epoch, reason) of what was skipped or substituted, oldest first, at most 10,000."""
        return self._handle.skipped()

    def close(self) -> None:
        """Stops the threads. Batches on loan stay valid. Closing twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Epoch:
    """The batches of one epoch as the extension gives them. Goes on after an error, with the batch that follows."""

    def __init__(self, loader: Loader) -> None:
        loader._running += 1
        self._mine = loader._running
        self._loader = loader
        self._epoch = loader._epoch
        loader._epoch += 1
        self._begun = False
        self._over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        loader = self._loader
        if self._over:
            raise StopIteration
        if self._mine != loader._running:
            raise RuntimeError("a newer iteration of this loader has begun; this one cannot go on")
        if not self._begun:
            loader._handle.seek(self._epoch)
            self._begun = True
        raw = loader._handle.next()
        if raw is None:
            self._over = True
            raise StopIteration
        return raw


class _Pairs(_Epoch):
    """(images, labels) as tensors."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader)
        self._output = chosen_output(loader._output)

    def __next__(self) -> tuple[Any, Any]:
        raw = super().__next__()
        return hand_over(raw[0], self._output), hand_over(raw[1], self._output)
