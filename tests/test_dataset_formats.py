# SPDX-License-Identifier: Apache-2.0
"""CIFAR (binary and pickled) and idx files: samples equal what numpy and torchvision read; broken files are named."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
import torchvision

FASHION = Path("/usr/share/datasets/fashion-mnist")


def check(dataset: stoker.Dataset, images: np.ndarray, labels: Any, comparisons: Callable[[int], None]) -> None:
    """Every sample equals: images N x H x W x C."""
    assert len(dataset) == len(images)
    assert dataset.labels.tolist() == list(labels)
    for i, image in enumerate(images):
        assert np.array_equal(dataset.decode(i), image), dataset.where(i)
    comparisons(len(images))


# ------------------------------------------------------------------------------------------------------ CIFAR, binary


def records(count: int, labels: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, (count, labels + 3072), dtype=np.uint8)
    made[:, 0] = rng.integers(0, 10 if labels == 1 else 20, count)
    if labels == 2:
        made[:, 1] = rng.integers(0, 100, count)
    return made


def pixels_of(made: np.ndarray) -> np.ndarray:
    return made[:, -3072:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def test_cifar10_binary(tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    parts = [records(count, 1, count) for count in (3, 1, 5)]
    for number, part in zip((1, 2, 10), parts):  # ten comes after two
        (tmp_path / f"data_batch_{number}.bin").write_bytes(part.tobytes())
    test = records(4, 1, 9)
    (tmp_path / "test_batch.bin").write_bytes(test.tobytes())
    (tmp_path / "batches.meta.txt").write_text("".join(f"name{i}\n" for i in range(10)) + "\n")
    train = np.concatenate(parts)
    check(stoker.Dataset(tmp_path), pixels_of(train), train[:, 0], comparisons)
    check(stoker.Dataset(tmp_path, split="test"), pixels_of(test), test[:, 0], comparisons)
    both = stoker.Dataset(tmp_path, split="all")
    check(both, pixels_of(np.concatenate([train, test])), np.concatenate([train, test])[:, 0], comparisons)
    assert (both.split_size("train"), both.split_size("test")) == (9, 4)
    assert both.classes == [f"name{i}" for i in range(10)]
    assert both.where(4).endswith("data_batch_10.bin, record 0")
    assert both.format == "cifar10" and both.sample_size == (32, 32)
    one = stoker.Dataset(tmp_path / "data_batch_2.bin")
    check(one, pixels_of(parts[1]), parts[1][:, 0], comparisons)


def test_cifar100_binary(tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    train, test = records(7, 2, 1), records(2, 2, 2)
    (tmp_path / "train.bin").write_bytes(train.tobytes())
    (tmp_path / "test.bin").write_bytes(test.tobytes())
    check(stoker.Dataset(tmp_path), pixels_of(train), train[:, 1], comparisons)
    coarse = stoker.Dataset(tmp_path, coarse_labels=True)
    check(coarse, pixels_of(train), train[:, 0], comparisons)
    assert len(coarse.classes) == 20 and len(stoker.Dataset(tmp_path).classes) == 100
    check(stoker.Dataset(tmp_path, split="test"), pixels_of(test), test[:, 1], comparisons)


def test_real_cifar(data_dir: Path, comparisons: Callable[[int], None]) -> None:
    folder = data_dir / "cifar-10-real-bin"
    made = np.fromfile(folder / "data_batch_1.bin", dtype=np.uint8).reshape(-1, 3073)
    check(stoker.Dataset(folder), pixels_of(made), made[:, 0], comparisons)


@pytest.mark.parametrize("cut", [1, 3000, 3072])
def test_a_partial_record_names_file_and_bytes(tmp_path: Path, cut: int) -> None:
    (tmp_path / "data_batch_1.bin").write_bytes(records(3, 1, 0).tobytes()[:-cut])
    with pytest.raises(stoker.DataError, match=rf"data_batch_1\.bin.*partial record.*{3073 - cut} bytes more"):
        stoker.Dataset(tmp_path)


def test_a_label_out_of_range_names_record_and_byte(tmp_path: Path) -> None:
    made = records(5, 1, 0)
    made[3, 0] = 10
    (tmp_path / "test_batch.bin").write_bytes(made.tobytes())
    with pytest.raises(stoker.DataError, match=rf"test_batch\.bin.*record 3 \(byte {3 * 3073}\).*label 10"):
        stoker.Dataset(tmp_path)


# ------------------------------------------------------------------------------------------------------ CIFAR, pickles


def batch(count: int, seed: int, **labels: int) -> dict[Any, Any]:
    rng = np.random.default_rng(seed)
    made: dict[Any, Any] = {"data": rng.integers(0, 256, (count, 3072), dtype=np.uint8)}
    for name, most in labels.items():
        made[name] = [int(label) for label in rng.integers(0, most, count)]
    made["filenames"] = [f"{i}.png" for i in range(count)]
    made["batch_label"] = "training batch 1 of 5"
    return made


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("keys", ["str", "bytes"])
def test_cifar10_pickles(tmp_path: Path, protocol: int, keys: str, comparisons: Callable[[int], None]) -> None:
    parts = [batch(count, count, labels=10) for count in (4, 2)]
    meta: dict[Any, Any] = {"label_names": [f"kind {i}" for i in range(10)], "num_vis": 3072}
    if keys == "bytes":
        encode = {True: str.encode, False: lambda text: text}
        parts = [{k.encode(): v for k, v in part.items()} for part in parts]
        meta = {b"label_names": [encode[True](name) for name in meta["label_names"]]}
    for number, part in enumerate(parts, 1):
        (tmp_path / f"data_batch_{number}").write_bytes(pickle.dumps(part, protocol))
    (tmp_path / "test_batch").write_bytes(pickle.dumps(parts[0], protocol))
    (tmp_path / "batches.meta").write_bytes(pickle.dumps(meta, protocol))
    key = (lambda name: name.encode()) if keys == "bytes" else (lambda name: name)
    data = np.concatenate([part[key("data")] for part in parts]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    labels = [label for part in parts for label in part[key("labels")]]
    dataset = stoker.Dataset(tmp_path)
    check(dataset, data, labels, comparisons)
    assert dataset.format == "cifar10" and dataset.classes == [f"kind {i}" for i in range(10)]
    assert len(stoker.Dataset(tmp_path, split="test")) == 4


def test_torchvision_reads_the_same_pickles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comparisons: Callable[[int], None]
) -> None:
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "_check_integrity", lambda self: True)
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "_load_meta", lambda self: None)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for number in range(1, 6):
        (folder / f"data_batch_{number}").write_bytes(pickle.dumps(batch(3, number, labels=10), 2))
    (folder / "test_batch").write_bytes(pickle.dumps(batch(2, 7, labels=10), 2))
    for train in (True, False):
        theirs = torchvision.datasets.CIFAR10(str(tmp_path), train)
        # The folder above, as torchvision's root.
        ours = stoker.Dataset(tmp_path, split="train" if train else "test")
        check(ours, theirs.data, theirs.targets, comparisons)


def test_cifar100_pickles(tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    train = batch(5, 3, fine_labels=100, coarse_labels=20)
    (tmp_path / "train").write_bytes(pickle.dumps(train))
    (tmp_path / "test").write_bytes(pickle.dumps(batch(2, 4, fine_labels=100, coarse_labels=20)))
    data = train["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    check(stoker.Dataset(tmp_path), data, train["fine_labels"], comparisons)
    check(stoker.Dataset(tmp_path, coarse_labels=True), data, train["coarse_labels"], comparisons)


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return (os.system, ("touch pickled-code-ran",))


def test_a_pickle_that_runs_code_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in range(6):
        (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": Runs(), "labels": []}, protocol))
        with pytest.raises(stoker.StokerError, match=r"data_batch_1.*(posix|nt)\.system"):
            stoker.Dataset(tmp_path)
    assert not (tmp_path / "pickled-code-ran").exists()


def test_a_pickle_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    whole = pickle.dumps(batch(1, 0, labels=10))
    for cut in [0, 1, 2, 10, 100, *range(200, len(whole), 211)]:
        (tmp_path / "data_batch_1").write_bytes(whole[:cut])
        with pytest.raises(stoker.StokerError, match=r"data_batch_1"):
            stoker.Dataset(tmp_path)


def test_a_pickle_under_the_binary_name(tmp_path: Path) -> None:
    (tmp_path / "data_batch_1.bin").write_bytes(pickle.dumps(batch(1, 0, labels=10)))
    with pytest.raises(stoker.DataError, match=r"data_batch_1\.bin.*pickle"):
        stoker.Dataset(tmp_path)


# ---------------------------------------------------------------------------------------------------------------- idx


def idx(array: np.ndarray, code: int = 8) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "names", ["train-images-idx3-ubyte train-labels-idx1-ubyte", "train-images.idx3-ubyte train-labels.idx1-ubyte"]
)
def test_idx(tmp_path: Path, packed: bool, names: str, comparisons: Callable[[int], None]) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 9, 7), dtype=np.uint8)
    labels = rng.integers(0, 10, 6, dtype=np.uint8)
    for name, data in zip(names.split(), (idx(images), idx(labels))):
        if packed:
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (tmp_path / name).write_bytes(data)
    dataset = stoker.Dataset(tmp_path)
    check(dataset, images[..., None], labels, comparisons)
    assert (dataset.format, dataset.channels, dataset.sample_size) == ("mnist", 1, (9, 7))


def test_torchvision_reads_the_same_idx_files(tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for part, count in (("train", 8), ("t10k", 3)):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(idx(rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(idx(rng.integers(0, 10, count, dtype=np.uint8)))
    for train in (True, False):
        theirs = torchvision.datasets.MNIST(str(tmp_path), train)
        ours = stoker.Dataset(tmp_path, split="train" if train else "test")
        check(ours, theirs.data.numpy()[..., None], theirs.targets.tolist(), comparisons)


def test_fashion_mnist(comparisons: Callable[[int], None]) -> None:
    if not FASHION.is_dir():
        pytest.skip("the package dataset-fashion-mnist is not installed")
    dataset = stoker.Dataset(FASHION, split="all")
    assert (dataset.split_size("train"), dataset.split_size("test")) == (60000, 10000)
    with gzip.open(FASHION / "t10k-images-idx3-ubyte.gz") as file:
        test = np.frombuffer(file.read()[16:], dtype=np.uint8).reshape(-1, 28, 28)
    for i in range(0, 10000, 97):
        assert np.array_equal(dataset.decode(60000 + i)[..., 0], test[i])
        comparisons(1)


def broken(tmp_path: Path, images: bytes, labels: bytes) -> Any:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(images)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    return pytest.raises(stoker.StokerError)


def test_broken_idx_files_are_named(tmp_path: Path) -> None:
    images, labels = np.zeros((4, 5, 5), np.uint8), np.zeros(4, np.uint8)
    cases = [
        (b"<!DOCTYPE html><html><body>404 Not Found</body></html>", idx(labels), "images-idx3-ubyte.*HTML"),
        (idx(images)[:-1], idx(labels), "images-idx3-ubyte.*116 bytes in all"),
        (idx(images) + b"x", idx(labels), "images-idx3-ubyte"),
        (idx(images), idx(labels[:3]), "3 labels for the 4 images"),
        (idx(images.astype(">f4"), 0x0D), idx(labels), "elements are"),
        (idx(images[:0]), idx(labels[:0]), "no images"),
        (struct.pack(">BBBB3I", 0, 0, 8, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF), idx(labels), "images-idx3-ubyte"),
        (b"", idx(labels), "images-idx3-ubyte"),
    ]
    for made_images, made_labels, words in cases:
        with broken(tmp_path, made_images, made_labels) as error:
            stoker.Dataset(tmp_path)
        error.match(words)


def test_a_gzip_bomb_is_stopped_by_the_headers_claim(tmp_path: Path) -> None:
    bomb = gzip.compress(idx(np.zeros((4, 5, 5), np.uint8)) + bytes(200 << 20))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(bomb)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.zeros(4, np.uint8))))
    with pytest.raises(stoker.DataError, match=r"images-idx3-ubyte.gz"):
        stoker.Dataset(tmp_path)


def test_qmnist_labels_count_by_their_first_column(tmp_path: Path, comparisons: Callable[[int], None]) -> None:
    images = np.random.default_rng(2).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    labels = (np.arange(24).reshape(3, 8) % 10).astype(">i4")
    (tmp_path / "qmnist-train-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "qmnist-train-labels-idx2-int").write_bytes(idx(labels, 0x0C))
    check(stoker.Dataset(tmp_path), images[..., None], labels[:, 0], comparisons)
