# SPDX-License-Identifier: Apache-2.0
"""Draws docs/benchmarks.svg: a panel a work, a bar a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from compare import Result

WIDTH, LEFT, RIGHT, BAR, GAP, TITLE, MARGIN = 900, 290, 150, 20, 7, 44, 24
INK, FAINT, OURS, THEIRS, OTHER = "#28282e", "#78767c", "#c8451b", "#8d99a6", "#c9d0d7"
FONT = "Helvetica, Arial, sans-serif"
FOOT = "Same files, cores and batch size; benchmarks.md tells how. Light bars read files of a format of their own."


def text(x: float, y: float, words: str, size: int = 13, fill: str = INK, end: bool = False, bold: bool = False) -> str:
    style = f'font-size="{size}" fill="{fill}"' + (' text-anchor="end"' if end else "")
    style += ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def panel(results: list[Result], top: float) -> tuple[list[str], float]:
    ordered = sorted((r for r in results if r.runs), key=lambda r: -r.median("rate"))
    ours = next(r.median("rate") for r in ordered if r.peer.key == "stoker")
    scale = (WIDTH - LEFT - RIGHT) / max(r.median("rate") for r in ordered)
    parts = [text(MARGIN, top + 20, results[0].work.name, 16, bold=True)]
    parts.append(text(WIDTH - MARGIN, top + 20, "images a second", 12, FAINT, end=True))
    y = top + TITLE
    for result in ordered:
        rate = result.median("rate")
        mine = result.peer.key == "stoker"
        colour = OURS if mine else THEIRS if result.peer.reads == "original files" else OTHER
        parts.append(text(LEFT - 10, y + 15, result.peer.name, end=True, bold=mine))
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{max(rate * scale, 1):.1f}" height="{BAR}" fill="{colour}"/>')
        words = f"{rate:,.0f}" + ("" if mine else f"   (Stoker: {ours / rate:.1f} ×)")
        parts.append(text(LEFT + rate * scale + 7, y + 15, words, bold=mine))
        y += BAR + GAP
    return parts, y + MARGIN


def plot(results: list[list[Result]]) -> str:
    parts: list[str] = []
    y: float = MARGIN
    for rows in results:
        drawn, y = panel(rows, y)
        parts += drawn
    parts.append(text(MARGIN, y, FOOT, 12, FAINT))
    height = y + MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="{FONT}">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"
