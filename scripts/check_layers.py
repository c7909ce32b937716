#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the source tree's layers: which folder may include whose headers. Prints each breach and then fails."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PARTS = ("base", "kernel", "image", "transform", "device", "dataset", "order", "observe", "pack", "loader")
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "kernel": {"base"},
    "image": {"base", "kernel"},
    "transform": {"base", "kernel", "image"},
    "device": {"base", "kernel"},
    "dataset": {"base"},
    "order": {"base"},
    "observe": {"base"},
    "pack": {"base", "kernel", "image", "dataset"},
    "loader": set(PARTS),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def breaches(root: Path) -> list[str]:
    """Every include that the table does not allow, as "file: what is wrong"."""
    found = []
    for path in sorted([*root.glob("src/**/*.[ch]"), *root.glob("src/**/*.cu")]):
        place = path.relative_to(root / "src")
        part = place.parts[0] if len(place.parts) > 1 else None
        if part is not None and part not in MAY_INCLUDE:
            found.append(f"{path.relative_to(root)}: src/{part} is not in the table of layers")
            continue
        for quote, name in INCLUDE.findall(path.read_text()):
            target = name.split("/")[0] if "/" in name else None
            if quote == "<" or target not in PARTS or part is None or target == part:
                continue
            if target not in MAY_INCLUDE[part]:
                found.append(f"{path.relative_to(root)}: src/{part} may not include {name}")
    for folder in ("cli", "python", "examples"):
        for path in sorted([*(root / folder).glob("**/*.[ch]")]):
            for quote, name in INCLUDE.findall(path.read_text()):
                inner = name.split("/")[0] in PARTS and "/" in name
                if inner or (quote == '"' and name.startswith("../")):
                    found.append(f"{path.relative_to(root)}: {folder}/ may include stoker.h only, not {name}")
    return found


def main() -> int:
    found = breaches(Path(__file__).resolve().parent.parent)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
