# SPDX-License-Identifier: Apache-2.0
"""What all Python tests share: where the build and the data are, and the count of exact comparisons.

STOKER_BUILD names another build folder than build/, STOKER_TEST_DATA another data folder than ../shared/data.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("STOKER_BUILD") or ROOT / "build").resolve()
DATA = Path(os.environ.get("STOKER_TEST_DATA") or ROOT.parent / "shared" / "data").resolve()

sys.path.insert(0, str(BUILD / "python"))
# Programs that tests start (examples, two processes side by side) find the same build.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BUILD / "python"), os.environ.get("PYTHONPATH")]))
# Datasets keep their indexes there, not in the user's own cache folder; programs that tests start, too.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="stoker-cache-")
os.environ.pop("STOKER_INDEX", None)
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)


class Comparisons:
    """Counts what was compared exactly with Pillow, torchvision or numpy. Call it with their number."""

    def __init__(self) -> None:
        self.made = 0
        self.failed = 0

    def __call__(self, count: int = 1) -> None:
        self.made += int(count)


counts = Comparisons()


@pytest.fixture(scope="session")
def comparisons() -> Callable[[int], None]:
    return counts


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "parity: compares exactly with Pillow, torchvision or numpy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "comparisons" in getattr(item, "fixturenames", ()):
            item.add_marker("parity")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    if outcome.get_result().failed and "comparisons" in getattr(item, "fixturenames", ()):
        counts.failed += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)  # a pytest-xdist worker hands its counts to the controller
    if output is not None:
        output["comparisons"] = (counts.made, counts.failed)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    made, failed = getattr(node, "workeroutput", {}).get("comparisons", (0, 0))
    counts.made += made
    counts.failed += failed


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"exact comparisons: {counts.made:,}, mismatches: {counts.failed}")


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """The build folder; it must exist, for these tests test a build."""
    assert BUILD.is_dir(), f"{BUILD} does not exist: run `make build` first, or name a build folder with STOKER_BUILD"
    return BUILD


@pytest.fixture(scope="session")
def stoker_command(build_dir: Path) -> Path:
    """The command that was built."""
    command = build_dir / "stoker"
    assert command.is_file(), f"{command} was not built"
    return command


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real data (photos, CIFAR, odd files)."""
    if not DATA.is_dir():
        pytest.skip(f"no data at {DATA}: name it with STOKER_TEST_DATA")
    return DATA


@pytest.fixture(scope="session")
def photos(data_dir: Path) -> list[Path]:
    """The photos' files, sorted."""
    files = sorted((data_dir / "photos").glob("*/*.JPEG"))
    if not files:
        pytest.skip(f"no photos in {data_dir / 'photos'}")
    return files
