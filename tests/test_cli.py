# SPDX-License-Identifier: Apache-2.0
"""The command: what each subcommand prints, its exit status, and bad input."""

from __future__ import annotations

import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

PHOTO_OPS = "random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)"
RECORD = 3073


@pytest.fixture
def stoker(stoker_command: Path) -> Any:
    def run(*arguments: object, **keywords: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(stoker_command), *map(str, arguments)], capture_output=True, text=True, timeout=120, **keywords
        )

    return run


def good(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""  # progress is for terminals
    return result.stdout


def failed(result: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """One line on standard error that holds all the words."""
    assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
    assert result.stderr.startswith("stoker: ") and result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An ImageFolder of 2 classes: 6 sound PNG files of 48 x 32 pixels."""
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / "data" / label).mkdir(parents=True)
        for i in range(3):
            pixels = rng.integers(0, 256, (32, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "data" / label / f"{i}.png")
    return tmp_path / "data"


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    """CIFAR-10's binary layout: 20 training records and 4 test records."""
    rng = np.random.default_rng(1)
    records = rng.integers(0, 256, (24, RECORD), dtype=np.uint8)
    records[:, 0] = np.arange(24) % 10
    data = tmp_path / "cifar"
    data.mkdir()
    (data / "data_batch_1.bin").write_bytes(records[:20].tobytes())
    (data / "test_batch.bin").write_bytes(records[20:].tobytes())
    return data


def test_version_and_help(stoker: Any) -> None:
    assert good(stoker("--version")).startswith("stoker 0.1.0 (")
    assert "usage: stoker" in good(stoker("--help"))
    for name in ("ls", "bench", "show", "sample"):
        text = good(stoker(name, "--help"))
        assert "example: stoker" in text and "--json" in text
        assert good(stoker("help", name)) == text


def test_wrong_usage(stoker: Any, folder: Path) -> None:
    assert stoker().returncode == 2
    failed(stoker("lss"), 2, "unknown command 'lss'")
    failed(stoker("ls"), 2, "no DATASET given")
    failed(stoker("ls", folder, folder), 2, "second")
    failed(stoker("bench", folder, "--bach", 3), 2, "unknown option '--bach'")
    failed(stoker("bench", folder, "--batch"), 2, "--batch needs a value")
    failed(stoker("bench", folder, "--batch", "x"), 2, "--batch x")
    failed(stoker("bench", folder, "--batch", 0), 2, "--batch 0")
    failed(stoker("bench", folder, "--batch=-1"), 2, "--batch -1")
    failed(stoker("bench", folder, "--json=yes"), 2, "takes no value")
    failed(stoker("bench", folder, "--split", "half"), 2, "default, train, test, all")
    failed(stoker("show", folder), 2, "-o sheet.png")
    failed(stoker("sample", folder / "new", "--size", "3by4"), 2, "500x375")


def test_ls_of_a_folder(stoker: Any, folder: Path) -> None:
    text = good(stoker("ls", folder))
    assert "imagefolder" in text and "2 (cat, dog)" in text and "48 x 32" in text
    told = json.loads(good(stoker("ls", folder, "--json")))
    assert (told["format"], told["samples"], told["classes"]) == ("imagefolder", 6, ["cat", "dog"])
    assert told["encodings"] == {"png": 6}
    assert told["sizes"]["median"] == {"width": 48, "height": 32}
    assert told["bytes"] == sum(file.stat().st_size for file in folder.glob("*/*.png"))
    assert told["odd"] == told["suspect"] == []


def test_ls_lists_odd_and_suspect_files(stoker: Any, folder: Path) -> None:
    whole = (folder / "cat" / "1.png").read_bytes()
    (folder / "cat" / "1.png").write_bytes(whole[: len(whole) // 2])
    (folder / "cat" / "a.gif.png").write_bytes(b"GIF89a" + bytes(50))
    (folder / "cat" / "empty.png").write_bytes(b"")
    Image.new("RGB", (9, 9)).save(folder / "dog" / "named.jpg", format="PNG")
    told = json.loads(good(stoker("ls", folder, "--json")))
    assert told["samples"] == told["checked"] == 9
    odd = {Path(entry["path"]).name: entry["reason"] for entry in told["odd"]}
    assert sorted(odd) == ["1.png", "a.gif.png", "empty.png"]
    assert "GIF" in odd["a.gif.png"] and "empty" in odd["empty.png"]
    (suspect,) = told["suspect"]
    assert suspect["path"].endswith("dog/named.jpg") and suspect["reason"] == "named as jpeg, is png"
    assert told["odd"][0]["sample"] == 1
    text = good(stoker("ls", folder))
    assert "named as jpeg, is png" in text and "GIF" in text


def test_ls_json_of_names_that_are_not_utf8(stoker: Any, folder: Path) -> None:
    name = os.fsencode(folder / "cat") + b"/\xff\xfe.png"
    Path(os.fsdecode(name)).write_bytes(b"nothing")
    result = subprocess.run([*stoker("--version").args[:1], "ls", folder, "--json"], capture_output=True, check=True)
    (entry,) = json.loads(result.stdout)["odd"]
    assert os.fsencode(entry["path"]) == name


def test_ls_of_cifar(stoker: Any, cifar: Path, data_dir: Path) -> None:
    assert "24 (20 train + 4 test)" in good(stoker("ls", cifar))
    told = json.loads(good(stoker("ls", cifar, "--split", "test", "--json")))
    assert (told["format"], told["samples"], len(told["classes"])) == ("cifar10", 4, 10)
    real = json.loads(good(stoker("ls", data_dir / "cifar-10-batches-bin", "--json")))
    assert real["splits"] == {"train": 10000, "test": 1000}
    assert real["classes"][:3] == ["airplane", "automobile", "bird"]


def test_ls_of_odd_files_is_done(stoker: Any, data_dir: Path) -> None:
    told = json.loads(good(stoker("ls", data_dir / "odd", "--json")))
    assert told["format"] == "imagefolder"
    assert len(told["odd"]) > 100 and len(told["suspect"]) > 50
    assert all(entry["reason"] for entry in told["odd"] + told["suspect"])


STAGES = {"read", "decode", "transform", "starved", "wait"}


def test_bench(stoker: Any, folder: Path) -> None:
    result = stoker("bench", folder, "--ops", "resize((8,8)) to(f32,nchw)", "--batch", 4, "--epochs", 5, "--json")
    told = json.loads(good(result))
    assert told["samples"] == 30 and told["batches"] == 10 and told["skipped"] == 0
    assert set(told["stages"]) == STAGES
    assert told["stages"]["transform"]["bytes"] >= 30 * 8 * 8 * 3 * 4
    assert told["images_per_s"] == pytest.approx(30 / told["seconds"], rel=1e-3)
    assert told["bytes_per_s"] == pytest.approx(30 * 8 * 8 * 3 * 4 / told["seconds"], rel=1e-3)
    assert 0 < told["peak_rss_bytes"] < 1 << 30 and told["first_batch_s"] > 0 and told["ring_bytes"] > 0
    text = good(stoker("bench", folder, "--ops", "resize((8,8))", "--threads", 1, "--epochs", 1))
    assert "images/s" in text and "threads 1" in text and "limited by" in text


def test_peak_memory_is_not_the_parents(stoker: Any, folder: Path) -> None:
    held = b"x" * (600 << 20)
    told = json.loads(good(stoker("bench", folder, "--ops", "resize((8,8))", "--epochs", 1, "--json")))
    assert len(held) == 600 << 20 and 0 < told["peak_rss_bytes"] < 300 << 20


def test_bench_policies(stoker: Any, folder: Path) -> None:
    (folder / "dog" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    failed(stoker("bench", folder, "--ops", "resize((8,8))"), 1, "dog/0.png", "sample 3")
    told = json.loads(good(stoker("bench", folder, "--ops", "resize((8,8))", "--on-error", "skip", "--json")))
    assert told["samples"] == 15 and told["skipped"] == 3


def test_show(stoker: Any, folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    text = good(stoker("show", folder, "--ops", "random_crop(24) normalize(imagenet)", "-o", sheet))
    assert "6 samples" in text
    with Image.open(sheet) as image:
        assert image.mode == "RGB" and image.width >= 480
        pixels = np.asarray(image)
    # The first tile is the first sample of epoch 0, cut as a loader cuts it, four times as large.
    import stoker as package

    spec = package.Spec("random_crop(24)")
    dataset = package.Dataset(folder)
    sample = int(package.Loader(dataset, batch=1).order(0)[0])
    expected = spec.apply(dataset.decode(sample), spec.draw(0, 0, sample, 48, 32)).repeat(4, 0).repeat(4, 1)
    windows = np.lib.stride_tricks.sliding_window_view(pixels[:160, :160], (96, 96), (0, 1))
    assert any(np.array_equal(window.transpose(1, 2, 0), expected) for row in windows for window in row)
    told = json.loads(good(stoker("show", folder, "--count", 4, "--json", "-o", sheet)))
    assert told["samples"] == 4 and told["path"] == str(sheet)


@pytest.mark.parametrize("before", ["to_tensor", "to_tensor(reciprocal=true)", "normalize(0,1)"])
def test_show_has_the_draws_of_the_asked_spec(stoker: Any, folder: Path, tmp_path: Path, before: str) -> None:
    # The sheet leaves the first transform out, and draws depend on a transform's place.
    import stoker as package

    sheet = tmp_path / "sheet.png"
    ops = f"{before} random_horizontal_flip random_crop(24)"
    dataset = package.Dataset(folder)
    spec = package.Spec(ops)
    sample = int(package.Loader(dataset, batch=1, seed=5).order(0)[0])
    good(stoker("show", folder, "--ops", ops, "--seed", 5, "-o", sheet))
    values = np.asarray(spec.apply(dataset.decode(sample), spec.draw(5, 0, sample, 48, 32)))
    expected = np.rint(values * 255).astype(np.uint8).transpose(1, 2, 0).repeat(4, 0).repeat(4, 1)
    with Image.open(sheet) as image:
        pixels = np.asarray(image)
    windows = np.lib.stride_tricks.sliding_window_view(pixels[:160, :160], (96, 96), (0, 1))
    assert any(np.array_equal(window.transpose(1, 2, 0), expected) for row in windows for window in row)


def test_ls_prints_no_control_characters(stoker: Any, folder: Path) -> None:
    (folder / "cat" / "a\x1b[2J\nb.png").write_bytes(b"nothing")
    (folder / "cow\x1b").mkdir()
    Image.new("RGB", (9, 9)).save(folder / "cow\x1b" / "0.png")
    text = good(stoker("ls", folder, "--classes"))
    assert "\x1b" not in text and "a?[2J?b.png" in text and "cow?" in text
    told = json.loads(good(stoker("ls", folder, "--json")))
    assert told["odd"][0]["path"].endswith("a\x1b[2J\nb.png") and told["classes"][1] == "cow\x1b"


@pytest.mark.parametrize("option", ["--size=8x8", "--classes=3"])
def test_sample_of_cifar_refuses_what_is_for_photos(stoker: Any, tmp_path: Path, option: str) -> None:
    failed(stoker("sample", tmp_path / "new", "--kind", "cifar", option), 2, option.split("=")[0])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["photos", "cifar"])
def test_sample_is_the_same_for_the_same_seed(stoker: Any, tmp_path: Path, kind: str) -> None:
    def draw(name: str, seed: int, threads: int) -> dict[str, bytes]:
        good(stoker("sample", tmp_path / name, "--kind", kind, "--count", 20, "--seed", seed, "--threads", threads))
        files = sorted(file for file in (tmp_path / name).rglob("*") if file.is_file())
        return {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in files}

    first = draw("a", 1, 1)
    assert draw("b", 1, 2) == first
    assert draw("c", 2, 2) != first
    told = json.loads(good(stoker("ls", tmp_path / "a", "--json")))
    assert told["odd"] == told["suspect"] == []
    assert told["samples"] == (20 if kind == "photos" else 24)
    failed(stoker("sample", tmp_path / "a", "--kind", kind), 1, "is not empty")


def test_bad_input(stoker: Any, folder: Path, cifar: Path, tmp_path: Path) -> None:
    failed(stoker("ls", tmp_path / "nowhere"), 1, "nowhere", "No such file")
    (tmp_path / "hollow").mkdir()
    failed(stoker("ls", tmp_path / "hollow"), 1, "hollow", "empty")
    (folder / "bird").mkdir()
    failed(stoker("ls", folder), 1, "bird")
    (folder / "bird").rmdir()
    batch = cifar / "data_batch_1.bin"
    whole = batch.read_bytes()
    batch.write_bytes(whole[:-100])
    failed(stoker("bench", cifar), 1, "data_batch_1.bin", "partial record")
    batch.write_bytes(whole[:RECORD] + b"\x0b" + whole[RECORD + 1 :])
    failed(stoker("ls", cifar), 1, "data_batch_1.bin", "record 1", "label 11")
    failed(stoker("bench", folder, "--ops", "resise(256)"), 2, "unknown transform 'resise'", ">>resise<<(256)")
    failed(stoker("bench", folder, "--ops", "resize(0)"), 2, ">>0<<")
    failed(stoker("show", folder, "-o", tmp_path / "no" / "where.png"), 1, "where.png")
    (tmp_path / "text").write_text("hello")
    failed(stoker("ls", tmp_path / "text"), 1, "text")


def test_a_folder_without_permission(stoker: Any, folder: Path) -> None:
    # As another user, where the tests run as one whom permissions do not stop; so in a place that all may enter.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        data = Path(shutil.copytree(folder, Path(place) / "data"))
        command = Path(shutil.copy(stoker("--version").args[0], place))
        (data / "dog").chmod(0)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        run = [command, "ls", data]
        failed(subprocess.run(run, capture_output=True, text=True, cwd="/", **user), 1, "dog", "Permission denied")
        (data / "dog").chmod(0o755)
        data.chmod(0)
        failed(subprocess.run(run, capture_output=True, text=True, cwd="/", **user), 1, "data", "Permission denied")
        data.chmod(0o755)


def test_a_file_that_vanishes_after_opening(folder: Path) -> None:
    import stoker as package

    dataset = package.Dataset(folder)
    (folder / "dog" / "2.png").unlink()
    with pytest.raises(package.ReadError, match=r"dog/2\.png.*No such file"):
        list(package.Loader(dataset, batch=2))


def test_a_full_disk_leaves_no_half_sheet(stoker: Any, folder: Path, tmp_path: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    sheet = tmp_path / "out" / "sheet.png"
    sheet.parent.mkdir()
    failed(stoker("show", folder, "-o", sheet, preexec_fn=small_files), 1, "sheet.png")
    assert list(sheet.parent.iterdir()) == []
    full = Path("/dev/full")
    if full.exists():
        with full.open("w") as out:
            result = subprocess.run(
                [*stoker("--version").args[:1], "ls", folder, "--json"], stdout=out, stderr=subprocess.PIPE, text=True
            )
        failed(result, 1, "cannot write the output")


def test_ctrl_c_ends_at_once(stoker: Any, cifar: Path) -> None:
    command = stoker("--version").args[0]
    child = subprocess.Popen(
        [command, "bench", cifar, "--epochs", "100000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, told = child.communicate(timeout=10)
    assert time.monotonic() - began < 2 and child.returncode == 130 and "interrupted" in told


def test_progress_goes_to_a_terminal_only(stoker: Any, cifar: Path) -> None:
    command = stoker("--version").args[0]
    leader, follower = pty.openpty()
    run = [command, "bench", cifar, "--epochs", "2000"]
    result = subprocess.run(run, stdout=subprocess.PIPE, stderr=follower, timeout=60)
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert result.returncode == 0 and "batches: " in shown and shown.endswith("\r\x1b[K")
