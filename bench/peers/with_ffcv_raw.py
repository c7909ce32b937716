# SPDX-License-Identifier: Apache-2.0
"""FFCV over pixels."""

from __future__ import annotations

import with_ffcv
from with_ffcv import VERSION, WORKS, batches, pixels, prepare

with_ffcv.MODE = "raw"
__all__ = ["VERSION", "WORKS", "batches", "pixels", "prepare"]
