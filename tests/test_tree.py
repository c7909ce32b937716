# SPDX-License-Identifier: Apache-2.0
"""The tree itself: layers, licence lines, machine paths, the public header alone, and what `make install` installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import check_layers


def tracked() -> list[Path]:
    """Files of the tree; from git where there is a checkout, else all but what is built."""
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if git.returncode == 0:
        files = [ROOT / name for name in git.stdout.splitlines()]
    else:
        files = [f for f in ROOT.rglob("*") if not f.relative_to(ROOT).parts[0].startswith(("build", "dist", "."))]
    return [file for file in files if file.is_file()]


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


def test_layers_hold() -> None:
    assert check_layers.breaches(ROOT) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("src/kernel/a.c", '#include "image/image.h"\n'),
        ("src/base/a.c", '#include "kernel/kernel.h"\n'),
        ("src/dataset/a.c", '#include "transform/plan.h"\n'),
        ("src/order/a.c", '  #  include "loader/loader.h"\n'),
        ("src/new/a.c", "\n"),
        ("cli/a.c", '#include "base/memory.h"\n'),
        ("cli/a.c", '#include "../src/base/memory.h"\n'),
    ],
)
def test_a_breach_of_the_layers_is_found(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    assert len(check_layers.breaches(tmp_path)) == 1


def test_sources_name_their_licence() -> None:
    suffixes = {".c", ".h", ".py", ".sh", ".cu"}
    lacking = [
        str(file.relative_to(ROOT))
        for file in tracked()
        if file.suffix in suffixes and "SPDX-License-Identifier: Apache-2.0" not in file.read_text()[:200]
    ]
    assert lacking == []


def test_no_file_holds_a_path_of_some_machine() -> None:
    homes = re.compile(r"/(?:home|Users)/[a-z]|/root/|/tmp/[a-z]\b/|/work/")
    found = []
    for file in tracked():
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue  # an image
        found += [
            f"{file.relative_to(ROOT)}: {match.group()}"
            for match in homes.finditer(text)
            if file != Path(__file__).resolve() and file.name != "LICENSE"
        ]
    assert found == []


@pytest.mark.parametrize("standard", ["-std=c99", "-std=c11", "-std=c17", "-std=c++11", "-std=c++17"])
def test_public_header_compiles_alone(tmp_path: Path, standard: str) -> None:
    plus = "++" in standard
    source = tmp_path / ("alone.cpp" if plus else "alone.c")
    source.write_text(
        "#include <stoker.h>\nint main(void) { stoker_stats s; (void)s; return stoker_last_error() == 0; }\n"
    )
    compiler = shutil.which("g++" if plus else "cc")
    assert compiler is not None
    run(
        compiler,
        standard,
        "-pedantic-errors",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        ROOT / "include",
        "-fsyntax-only",
        source,
    )


def test_only_the_public_interface_is_exported(build_dir: Path) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm on this machine")
    names = [
        line.split()[-1] for line in run(nm, "-D", "--defined-only", build_dir / "libstoker.so").stdout.splitlines()
    ]
    assert [name for name in names if not name.startswith("stoker_")] == []
    header = (ROOT / "include" / "stoker.h").read_text()
    declared = set(re.findall(r"^STOKER_API[^;]*?\b(stoker_\w+)\(", header, re.MULTILINE))
    assert declared and declared == set(names)


def test_nothing_is_left_to_be_resolved(build_dir: Path) -> None:
    library = run("nm", "-D", "--undefined-only", build_dir / "libstoker.so").stdout
    assert not re.search(r"\b(sk|stoker)_\w+", library)
    assert not re.search(r"\b(exit|abort|_exit|printf|puts|__printf_chk|__assert_fail)(@|$)", library, re.MULTILINE)


def test_example_compiles_against_what_is_installed(build_dir: Path, tmp_path: Path) -> None:
    """make install, then only pkg-config's word for where things are."""
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    run(*meson, "install", "-C", build_dir, "--no-rebuild", "--destdir", tmp_path / "root")
    (file,) = (tmp_path / "root").rglob("stoker.pc")
    prefix = re.search(r"^prefix=(.*)$", file.read_text(), re.MULTILINE)
    assert prefix is not None
    installed = tmp_path / "root" / prefix.group(1).lstrip("/")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(file.parent)}
    flags = run(
        "pkg-config", f"--define-variable=prefix={installed}", "--cflags", "--libs", "stoker", env=environment
    ).stdout.split()
    program = tmp_path / "feed"
    run("cc", "-std=c17", "-Wall", "-Wextra", "-Werror", ROOT / "examples" / "feed.c", "-o", program, *flags)
    (library,) = (tmp_path / "root").rglob("libstoker.so")
    run(installed / "bin" / "stoker", "--version", env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})

    photos = tmp_path / "photos"
    run(build_dir / "stoker", "sample", photos, "--count", 12, "--seed", 1)
    result = run(program, photos, env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})
    assert "12" in result.stdout


def test_documents_link_to_what_is_there() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_readme_says_what_runs(build_dir: Path, tmp_path: Path) -> None:
    """The README's first Python loader, on drawn photos."""
    run(build_dir / "stoker", "sample", tmp_path / "photos", "--count", 70, "--seed", 1)
    block = re.search(r"```python\n(import stoker.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    code = block.group(1).split("for images")[0] + "print(next(iter(loader))[0].shape)"
    assert "64, 3, 224, 224" in run(sys.executable, "-c", code, cwd=tmp_path).stdout
