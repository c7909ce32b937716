# SPDX-License-Identifier: Apache-2.0
"""The package's promises: memory that lives as long as it is used, threads and files that go, waits that end, errors
of the right kinds."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
import torch
from numpy.typing import NDArray
from PIL import Image

IMAGES = np.random.default_rng(1).integers(0, 256, (50, 12, 10, 3), dtype=np.uint8)
LABELS = np.arange(50) * 3
BYTES = "to(u8,nhwc)"


def opened(ops: Any = BYTES, batch: int = 8, **settings: Any) -> stoker.Loader:
    settings.setdefault("shuffle", False)
    settings.setdefault("threads", 2)
    return stoker.Loader((IMAGES, LABELS), ops, batch, **settings)


def run(code: str, timeout: float = 60.0, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout, **options
    )


# ---- memory ----


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_tensors_outlive_the_loader(output: Any) -> None:
    loader = opened(output=output)
    batches = list(loader)
    loader.close()
    del loader
    gc.collect()
    images = np.concatenate([np.asarray(images) for images, _ in batches])
    labels = np.concatenate([np.asarray(labels) for _, labels in batches])
    assert np.array_equal(images, IMAGES)
    assert np.array_equal(labels, LABELS)
    kept = [batches[2][1], batches[1][0][3]]  # labels alone, and a view, keep their batch
    del batches
    gc.collect()
    assert np.array_equal(np.asarray(kept[0]), LABELS[16:24])
    assert np.array_equal(np.asarray(kept[1]), IMAGES[11])


def test_tensors_die_on_another_thread() -> None:
    loader = opened(depth=2, output="torch")
    iterator = iter(loader)
    boxes = [[next(iterator)] for _ in range(4)]
    threads = [threading.Thread(target=box.clear) for box in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rest = list(iterator)
    assert len(rest) == len(loader) - 4
    assert np.array_equal(rest[-1][0].numpy(), IMAGES[48:])


def test_tensors_alive_at_exit_are_no_harm() -> None:
    done = run(
        """
        import numpy as np, stoker, torch
        images = np.zeros((40, 8, 8, 3), np.uint8)
        loader = stoker.Loader((images, np.arange(40)), "normalize(imagenet)", 4, output="torch")
        other = stoker.Loader((images, None), None, 4, output="numpy")
        iterator = iter(loader)
        kept = [next(iterator), next(iterator)]
        arrays = list(other)
        print(float(kept[1][0].sum()) != 0.0)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_from_dlpack_shares_memory() -> None:
    with opened(output="dlpack") as loader:
        images, labels = next(iter(loader))
    assert images.__dlpack_device__() == (1, 0)
    assert images.shape == (8, 12, 10, 3)
    assert (images.dtype, labels.dtype) == ("uint8", "int64")
    array, tensor = np.from_dlpack(images), torch.from_dlpack(images)
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    assert tensor.data_ptr() % 64 == 0
    assert array.flags.writeable
    array[0, 0, 0, 0] ^= 255
    assert tensor[0, 0, 0, 0] == array[0, 0, 0, 0] == IMAGES[0, 0, 0, 0] ^ 255
    tensor[1] = 7
    assert (array[1] == 7).all()
    assert IMAGES[1].max() > 7  # the dataset's own memory is not the batch's
    del images, array
    gc.collect()
    assert (tensor[1] == 7).all()


def test_capsules_nobody_took_give_their_memory_back() -> None:
    with opened(output="dlpack", depth=2) as loader:
        for _ in range(20):
            for images, _ in loader:
                images.__dlpack__()
                images.__dlpack__(max_version=(1, 0))
        assert loader.stats()["batches"] == 20 * len(loader)
    with pytest.raises(BufferError):
        images.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        images.__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize(("dtype", "numpy_type"), [("u8", np.uint8), ("f16", np.float16), ("f32", np.float32)])
def test_dtypes_reach_numpy_and_torch(dtype: str, numpy_type: Any) -> None:
    with opened(f"to({dtype})", output="numpy") as one, opened(f"to({dtype})", output="torch") as two:
        images, labels = next(iter(one))
        tensors, _ = next(iter(two))
    assert images.dtype == numpy_type
    assert labels.dtype == np.int64
    assert images.shape == (8, 3, 12, 10)
    assert np.array_equal(tensors.numpy(), images)


def test_bfloat16_needs_torch() -> None:
    with opened("to(bf16)", output="torch") as loader:
        images, labels = next(iter(loader))
        assert images.dtype == torch.bfloat16
        assert labels.dtype == torch.int64
        right = (torch.from_numpy(IMAGES[:8]).permute(0, 3, 1, 2).float() / 255).bfloat16()
        assert torch.equal(images, right)
    with opened("to(bf16)", output="numpy") as loader, pytest.raises(stoker.SettingError, match="bfloat16"):
        next(iter(loader))


def test_auto_is_torch_once_it_is_imported() -> None:
    with opened() as loader:
        assert isinstance(next(iter(loader))[0], torch.Tensor)
    done = run(
        """
        import sys, numpy as np, stoker
        loader = stoker.Loader((np.zeros((4, 2, 2, 3), np.uint8), None), None, 2)
        assert all(type(images) is np.ndarray for images, labels in loader)
        stoker.Loader((np.zeros((4, 2, 2, 3), np.uint8), None), stoker.Resize(3), 2).close()
        assert "torch" not in sys.modules and "torchvision" not in sys.modules and "PIL" not in sys.modules
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_more_batches_are_kept_than_are_made_ahead() -> None:
    with opened(batch=1, depth=2) as loader:
        for _ in range(3):
            batches = list(loader)
            assert len(batches) == 50
            assert torch.equal(torch.cat([images for images, _ in batches]), torch.from_numpy(IMAGES))
            assert len({images.data_ptr() for images, _ in batches}) == 50


# ---- threads, files, waits ----


def counted() -> tuple[int, int]:
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("closed", [True, False])
def test_a_hundred_loaders_leave_nothing_behind(closed: bool, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for number in range(4):
        Image.fromarray(IMAGES[number]).save(tmp_path / "a" / f"{number}.png")
    opened().close()
    gc.collect()
    before = counted()
    for number in range(100):
        dataset = stoker.Dataset(tmp_path)
        loader = stoker.Loader(dataset, BYTES, 2, threads=3)
        iterator = iter(loader)
        if number % 2:
            next(iterator)
        if closed:
            loader.close()
            loader.close()
        del loader, iterator, dataset
    gc.collect()
    assert counted() == before


# One batch that takes many seconds, of samples that take some thousandths each.
SLOW = """
import numpy as np, stoker
images = np.random.default_rng(2).integers(0, 256, (1, 300, 300, 3), dtype=np.uint8)
dataset = stoker.Dataset.from_arrays(images).subset([0] * 20000)
def slow():
    ops = "resize((400,400),interpolation=lanczos) resize((1,1))"
    return stoker.Loader(dataset, ops, 20000, shuffle=False, threads=1, output="numpy")
"""


def slow() -> stoker.Loader:
    names: dict[str, Any] = {}
    exec(SLOW, names)
    return names["slow"]()


def test_control_c_ends_a_wait() -> None:
    code = """
loader = slow()
print("waiting", flush=True)
try:
    next(iter(loader))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        assert time.monotonic() - begin < 2.0
        assert out == "interrupted\n"
        assert err.strip().endswith("KeyboardInterrupt")
    finally:
        child.kill()
        child.wait()


class Waiter(threading.Thread):
    """Takes a batch on a thread of its own, and keeps the error."""

    def __init__(self, iterator: Any) -> None:
        super().__init__()
        self.iterator = iterator
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            next(self.iterator)
        except BaseException as error:
            self.error = error


def test_another_thread_closes_a_loader_that_is_waited_for() -> None:
    loader = slow()
    waiter = Waiter(iter(loader))
    waiter.start()
    time.sleep(0.2)
    begin = time.monotonic()
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        len(loader)
    waiter.join(10)
    assert time.monotonic() - begin < 2.0
    assert isinstance(waiter.error, ValueError)
    assert "closed" in str(waiter.error)


def test_a_signal_handler_closes_the_loader_that_is_waited_for() -> None:
    """The handler runs within the wait; what it freed is not touched any more."""
    loader = slow()
    before = signal.signal(signal.SIGALRM, lambda *_: loader.close())
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(ValueError, match="closed"):
            next(iter(loader))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_second_thread_is_told_that_the_loader_is_in_use() -> None:
    loader = slow()
    iterator = iter(loader)
    waiter = Waiter(iterator)
    waiter.start()
    time.sleep(0.2)
    errors = []
    for _ in range(3):
        with pytest.raises(stoker.ForkError) as caught:
            next(iterator)
        errors.append(str(caught.value))
    assert waiter.is_alive()  # and is not disturbed
    loader.close()
    waiter.join(10)
    assert isinstance(waiter.error, ValueError)


def test_a_stall_is_a_timeout_error() -> None:
    """How one comes about is check_loader_life's; here only its class."""
    error = stoker._core._make_error(-8, "STALL", "nothing for 1 s")
    assert type(error) is stoker.StallError
    assert isinstance(error, TimeoutError)


def test_a_pipe_in_a_folder_is_refused_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / "0.png")
    with stoker.Loader(tmp_path, "center_crop(8)", 1) as loader, pytest.raises(stoker.ReadError, match=r"0\.png"):
        next(iter(loader))


def test_after_fork_there_is_an_error_and_no_hang() -> None:
    done = run(
        """
        import os, numpy as np, stoker
        loader = stoker.Loader((np.zeros((40, 8, 8, 3), np.uint8), np.arange(40)), None, 4, output="numpy")
        iterator = iter(loader)
        next(iterator)
        child = os.fork()
        if child == 0:
            try:
                next(iterator)
            except stoker.ForkError as error:
                assert "fork" in str(error), error
                loader.close()
                fresh = stoker.Loader((np.ones((4, 8, 8, 3), np.uint8), None), None, 4, output="numpy")
                [(images, labels)] = fresh
                assert images.min() == 1
                os._exit(7)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        assert len(list(iterator)) == 9
        """,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- iterating ----


def labels_of(batches: Any) -> list[int]:
    return [int(label) for _, labels in batches for label in labels]


def test_an_error_in_the_loop_and_leaving_it_are_no_harm() -> None:
    with opened(shuffle=True, seed=4) as loader:
        with pytest.raises(ZeroDivisionError):
            for _ in loader:
                raise ZeroDivisionError
        for _ in loader:
            break
        assert loader.epoch == 2
        assert labels_of(loader) == [3 * sample for sample in loader.order(2)]
        assert loader.epoch == 3


def test_an_older_iterator_cannot_go_on() -> None:
    with opened() as loader:
        older = iter(loader)
        next(older)
        newer = iter(loader)
        assert next(newer)[1].tolist() == LABELS[:8].tolist()
        with pytest.raises(RuntimeError, match="newer"):
            next(older)
        assert len(list(newer)) == len(loader) - 1
        assert list(newer) == []


def test_set_epoch_and_order() -> None:
    with opened(shuffle=True, seed=9) as loader, opened(shuffle=True, seed=9, first_epoch=3) as other:
        third = labels_of([batch for _ in range(4) for batch in loader][-len(loader) :])
        assert labels_of(other) == third == [3 * sample for sample in loader.order(3)]
        loader.set_epoch(np.int64(3))  # type: ignore[arg-type]
        assert labels_of(loader) == third
        assert loader.epoch == 4
        assert np.array_equal(loader.order(3, 10, 5), loader.order(3)[10:15])
        assert sorted(loader.order(5)) == list(range(50))


@pytest.mark.parametrize(("last_batch", "length", "sizes"), [("partial", 7, 2), ("drop", 6, 8), ("pad", 7, 8)])
def test_length_and_the_last_batch(last_batch: Any, length: int, sizes: int) -> None:
    with opened(last_batch=last_batch) as loader:
        batches = list(loader.batches())
        assert len(loader) == len(batches) == length
        assert loader.samples == (48 if last_batch == "drop" else 50)
        assert len(batches[-1].labels) == sizes
        assert batches[-1].valid == (2 if last_batch != "drop" else 8)
        assert [batch.index for batch in batches] == list(range(length))
        assert {batch.epoch for batch in batches} == {0}
        for batch in batches:
            assert batch.labels.dtype == batch.samples.dtype == torch.int64
            assert torch.equal(batch.labels, batch.samples * 3)
            assert torch.equal(batch.images, torch.from_numpy(IMAGES)[batch.samples])


def test_batches_tell_their_draws() -> None:
    spec = stoker.Spec("random_crop(8) random_horizontal_flip to(u8,nhwc)")
    with opened(spec, shuffle=True, seed=3, draws=True, output="numpy") as loader:
        for batch in loader.batches():
            assert batch.draws is not None
            for image, sample, draws in zip(batch.images, batch.samples, batch.draws, strict=True):
                assert draws == spec.draw(3, 0, sample, 10, 12)
                assert [draw.kind for draw in draws] == ["crop", "flip"]
                (top, left, height, width), flip = draws[0].value, draws[1].value[0]
                right = IMAGES[sample, top : top + height, left : left + width]
                assert np.array_equal(image, right[:, ::-1] if flip else right)
    with opened() as plain:
        assert next(plain.batches()).draws is None


def test_an_explicit_order() -> None:
    order = [5, 5, 0, 49]
    with opened(order=order, batch=3, shuffle=None) as loader:
        assert loader.samples == 4
        for _ in range(2):
            assert labels_of(loader) == [15, 15, 0, 147]
    with pytest.raises(stoker.SettingError, match="contradict"):
        opened(order=order, shuffle=True)
    with pytest.raises(stoker.StokerError):
        opened(order=[50])


def test_epochs_end() -> None:
    with opened(epochs=2) as loader:
        assert len(list(loader)) == len(list(loader)) == 7
        with pytest.raises(stoker.StokerError):
            list(loader)


USES: list[Callable[[stoker.Loader], Any]] = [
    list,
    len,
    lambda loader: [next(iterator) for iterator in [iter(loader)] if loader.close() is None],
    lambda loader: next(loader.batches()),
    lambda loader: loader.order(0),
    lambda loader: loader.samples,
    lambda loader: loader.stats(),
    lambda loader: loader.skipped(),
]


@pytest.mark.parametrize("use", USES)
def test_use_after_close_is_a_value_error(use: Callable[[stoker.Loader], Any]) -> None:
    with opened() as loader:
        next(iter(loader))
    with pytest.raises(ValueError, match="closed"):
        use(loader)


# ---- errors ----


def test_errors_are_of_the_right_kinds(tmp_path: Path) -> None:
    with pytest.raises(stoker.ReadError, match="nowhere") as read:
        stoker.Dataset(tmp_path / "nowhere")
    assert isinstance(read.value, OSError)
    with pytest.raises(stoker.SettingError, match="resise") as setting:
        stoker.Spec("resise(3)")
    assert isinstance(setting.value, ValueError)
    with pytest.raises(stoker.DataError) as data:
        stoker.decode(b"\x89PNG\r\n\x1a\nrubbish")
    assert isinstance(data.value, ValueError)
    with pytest.raises(stoker.LimitError) as limit:
        stoker.decode(encoded(Image.new("RGB", (20, 20)), tmp_path), max_pixels=399)
    assert isinstance(limit.value, ValueError)
    with pytest.raises(stoker.UnsupportedError) as unsupported:
        stoker.decode(b"II*\x00\x08\x00\x00\x00" + bytes(100))
    assert isinstance(unsupported.value, NotImplementedError)
    errors = [read.value, setting.value, data.value, limit.value, unsupported.value]
    assert len({error.status for error in errors}) == 5
    for error in errors:
        assert error.status
        assert isinstance(error, stoker.StokerError)
        assert isinstance(error, RuntimeError)
        assert str(error)
        assert "\n" not in str(error)


def test_what_is_no_file_is_no_image() -> None:
    for decode in [stoker.decode, stoker.Spec("to_tensor").apply_encoded]:
        with pytest.raises(TypeError):
            decode(100)  # type: ignore[operator]
        with pytest.raises(TypeError):
            decode("photo.jpg")  # type: ignore[operator]


def encoded(image: Image.Image, folder: Path) -> bytes:
    image.save(folder / "made.png")
    return (folder / "made.png").read_bytes()


def broken_folder(root: Path) -> Path:
    (root / "a").mkdir()
    for number in range(6):
        Image.fromarray(IMAGES[number]).save(root / "a" / f"{number}.png")
    whole = (root / "a" / "3.png").read_bytes()
    (root / "a" / "3.png").write_bytes(whole[: len(whole) // 2])
    return root


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    with stoker.Loader(broken_folder(tmp_path), BYTES, 2, shuffle=False) as loader:
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(stoker.DataError, match=r"a/3\.png"):
            next(iterator)
        images, _ = next(iterator)  # the one after goes on
        assert np.array_equal(images.numpy(), IMAGES[4:6])


def test_a_broken_image_may_be_skipped_or_substituted(tmp_path: Path) -> None:
    folder = broken_folder(tmp_path)
    with stoker.Loader(folder, BYTES, 6, shuffle=False, on_error="skip") as loader:
        assert sum(len(labels) for _, labels in loader) == 5
        [(sample, epoch, reason)] = loader.skipped()
        assert (sample, epoch) == (3, 0)
        assert "3.png" in reason
    with stoker.Loader(folder, BYTES, 6, shuffle=False, on_error="substitute") as loader:
        [(images, _)] = loader
        assert np.array_equal(images.numpy(), IMAGES[[0, 1, 2, 4, 4, 5]])


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"batch": 0}, "batch"),
        ({"threads": -1}, "threads"),
        ({"last_batch": "keep"}, "last_batch"),
        ({"on_error": "ignore"}, "on_error"),
        ({"output": "jax"}, "output"),
        ({"ops": "resize(0)"}, "resize"),
        ({"ops": 3}, "int"),
        ({"depth": -1}, "depth"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"first_epoch": -1}, "epoch"),
        ({"order": [0.5, 1.2]}, "order"),
        ({"order": [[0, 1]]}, "order"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(stoker.SettingError, match=word):
        opened(**settings)


# ---- datasets ----


def test_from_arrays_takes_no_copy_and_keeps_the_array() -> None:
    array = IMAGES.copy()
    died = weakref.ref(array)
    dataset = stoker.Dataset.from_arrays(array, LABELS)
    loader = stoker.Loader(dataset, BYTES, 50, shuffle=False, output="numpy")
    array[7] = 0  # seen, as nothing was read ahead yet
    del dataset, array
    gc.collect()
    assert died() is not None
    [(images, labels)] = loader
    assert (images[7] == 0).all()
    assert np.array_equal(np.delete(images, 7, 0), np.delete(IMAGES, 7, 0))
    assert np.array_equal(labels, LABELS)
    loader.close()
    del loader
    gc.collect()
    assert died() is None


def test_from_arrays_of_other_kinds() -> None:
    gray = stoker.Dataset.from_arrays(IMAGES[..., 0].copy())
    assert (gray.channels, gray.sample_size, len(gray), gray.format) == (1, (12, 10), 50, "arrays")
    assert gray.classes == []
    assert not gray.labels.any()
    assert np.array_equal(gray.decode(3), IMAGES[3, :, :, :1])
    tensors = stoker.Dataset.from_arrays(torch.from_numpy(IMAGES), torch.from_numpy(LABELS).int())  # type: ignore[arg-type]
    assert np.array_equal(tensors.decode(-1), IMAGES[-1])
    assert np.array_equal(tensors.labels, LABELS)
    assert tensors.label(2) == 6


@pytest.mark.parametrize(
    ("images", "labels", "word"),
    [
        (IMAGES.astype(np.float32), None, "float32"),
        (IMAGES[0, 0], None, "shape"),
        (IMAGES[:, ::2], None, "contiguous"),
        (IMAGES.transpose(0, 3, 1, 2), None, "contiguous"),
        (np.zeros((4, 2, 2, 5), np.uint8), None, "channels"),
        (IMAGES, LABELS[:-1], "labels"),
        (IMAGES, LABELS[:, None], "labels"),
        (IMAGES, LABELS + 0.5, "labels"),
    ],
)
def test_from_arrays_refuses(images: NDArray[Any], labels: Any, word: str) -> None:
    with pytest.raises(stoker.SettingError, match=word):
        stoker.Dataset.from_arrays(images, labels)


def test_subset_and_concat() -> None:
    base = stoker.Dataset.from_arrays(IMAGES, LABELS)
    subset = base.subset([4, 4, 0])
    both = stoker.Dataset.concat([subset, base.subset(np.arange(48, 50)), subset])
    del base, subset
    gc.collect()
    order = [4, 4, 0, 48, 49, 4, 4, 0]
    assert both.labels.tolist() == [3 * sample for sample in order]
    with stoker.Loader(both, BYTES, 8, shuffle=False, output="numpy") as loader:
        [(images, _)] = loader
    assert np.array_equal(images, IMAGES[order])
    for wrong in [[8], [-1], [0.5], [[0, 1]], np.array([True, False])]:
        with pytest.raises(stoker.SettingError):
            both.subset(wrong)
    with pytest.raises(stoker.StokerError):
        stoker.Dataset.concat([both, stoker.Dataset.from_arrays(IMAGES[..., 0].copy())])
    with pytest.raises(stoker.StokerError):
        stoker.Dataset.concat([])


def test_samples_of_a_folder(tmp_path: Path) -> None:
    for name in ["b", "a", "é"]:
        (tmp_path / name).mkdir()
        Image.fromarray(IMAGES[0]).save(tmp_path / name / "x.png")
    dataset = stoker.Dataset(tmp_path)
    assert dataset.classes == ["a", "b", "é"]
    assert repr(dataset) == "<stoker.Dataset: imagefolder, 3 samples, 3 classes>"
    assert dataset.where(2) == str(tmp_path / "é" / "x.png")
    assert dataset.bytes(0) == (tmp_path / "a" / "x.png").read_bytes()
    assert np.array_equal(dataset.decode(1), IMAGES[0])
    assert dataset.check(0)[:3] == ("sound", 10, 12)
    assert dataset.sample_size is None
    for use in [dataset.decode, dataset.label, dataset.where, dataset.bytes, dataset.check]:
        with pytest.raises(IndexError):
            use(3)
        with pytest.raises(IndexError):
            use(-4)


# ---- specs ----


def test_specs_are_pickled_compared_and_printed() -> None:
    spec = stoker.Spec("resize(8) normalize(imagenet)")
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    assert hash(again) == hash(spec)
    assert again.text == spec.text
    assert stoker.Spec("resize(9)") != spec
    assert (spec.dtype, spec.layout) == ("f32", "nchw")
    assert eval(repr(spec)) == spec
    objects = stoker.Spec(" ".join(t.spec for t in [stoker.Resize(8), stoker.Normalize("imagenet")]))
    assert objects == spec


def test_ops_may_be_objects_and_lists() -> None:
    given = [stoker.RandomCrop(8, padding=2), stoker.RandomHorizontalFlip(), "to(f16)"]
    with opened(given) as one, opened(" ".join(t if isinstance(t, str) else t.spec for t in given)) as two:
        assert one.spec == two.spec
        for (a, _), (b, _) in zip(one, two, strict=True):
            assert torch.equal(a, b)


def test_apply_agrees_with_the_loader(tmp_path: Path) -> None:
    spec = stoker.Spec("random_resized_crop(9) random_vertical_flip normalize(0.5,0.25)")
    with opened(spec, seed=5, draws=True, output="numpy") as loader:
        for batch in loader.batches():
            assert batch.draws is not None
            for image, sample, draws in zip(batch.images, batch.samples, batch.draws, strict=True):
                assert np.array_equal(spec.apply(IMAGES[sample], draws), image)
                data = encoded(Image.fromarray(IMAGES[sample]), tmp_path)
                assert np.array_equal(spec.apply_encoded(data, draws), image)
    with pytest.raises(stoker.SettingError, match="uint8"):
        spec.apply(IMAGES[0].astype(np.float32))  # type: ignore[arg-type]
    with pytest.raises(stoker.SettingError):
        spec.apply(IMAGES[0], [])


def test_a_region_is_four_numbers(tmp_path: Path) -> None:
    data = encoded(Image.fromarray(IMAGES[0]), tmp_path)
    whole = stoker.decode(data)
    for region in [(1, 2, 3, 4), [1, 2, 3, 4], np.array([1, 2, 3, 4])]:
        assert np.array_equal(stoker.decode(data, region), whole[2:6, 1:4])  # type: ignore[arg-type]
    with pytest.raises(stoker.SettingError, match="left, top, width, height"):
        stoker.decode(data, (1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        stoker.decode(data, 5)  # type: ignore[arg-type]


def test_the_machine_is_described() -> None:
    assert stoker.cpu() in ("scalar", "avx2", "avx512", "neon")
    assert 1 <= stoker.usable_cores() <= len(os.sched_getaffinity(0))
    assert stoker.__version__.count(".") == 2
    assert set(stoker.__all__) <= set(dir(stoker))
