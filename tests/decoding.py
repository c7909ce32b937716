# SPDX-License-Identifier: Apache-2.0
"""Decoding with Stoker beside Pillow, for the parity tests of the image formats."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker
from conftest import DATA
from PIL import Image

StokerError = stoker.StokerError
decode = stoker.decode


def odd_files(folder: str) -> list[Path]:
    """The files of a folder of the odd data; skips the test where there is no such folder."""
    files = sorted((DATA / "odd" / folder).glob("*"))
    if not files:
        pytest.skip(f"no data at {DATA / 'odd' / folder}")
    return files


TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def turned_upright(image: Image.Image) -> Image.Image:
    """The pixels of PIL.ImageOps.exif_transpose, which also writes the EXIF block anew and may fail at that."""
    image.load()
    turn = TURNS.get(image.getexif().get(0x0112, 1))
    return image if turn is None else image.transpose(turn)


def pillow(data: bytes, upright: bool = False) -> np.ndarray | Exception:
    """What Pillow makes of a file: RGB pixels, or what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
            return np.asarray((turned_upright(image) if upright else image).convert("RGB"))
    except Exception as error:  # Pillow raises whatever it stumbles over
        return error


def compare(
    data: bytes, what: str, region: tuple[int, int, int, int] | None = None, exif_orientation: bool = False
) -> bool:
    """Asserts that Stoker does what Pillow does; whether both read the file."""
    expected = pillow(data, exif_orientation)
    try:
        pixels = decode(data, region=region, exif_orientation=exif_orientation)
    except StokerError as error:
        assert isinstance(expected, Exception), f"{what}: Pillow reads it, Stoker says: {error}"
        return False
    assert not isinstance(expected, Exception), f"{what}: Stoker reads it, Pillow says: {expected!r}"
    if region is not None:
        left, top, width, height = region
        expected = expected[top : top + height, left : left + width]
    assert pixels.shape == expected.shape, f"{what}: {pixels.shape}, Pillow has {expected.shape}"
    assert np.array_equal(pixels, expected), f"{what}: {int((pixels != expected).sum())} values differ from Pillow's"
    return True
