"""Limits on what a file may unpack to: a small file from an untrusted source must not fill the memory.

The limits come from the environment, not from the settings of a run, because a run's own files must not raise them.
"""

from __future__ import annotations

import os
from pathlib import Path

from paretoda.errors import DataError

PIXELS = "PARETODA_MAX_IMAGE_PIXELS"
"""Environment variable that raises the limit of an image; `paretoda --max-image-pixels N` sets it."""
UNPACKED = "PARETODA_MAX_UNPACKED_BYTES"
"""Environment variable that raises the limit of an archive; `paretoda --max-unpacked-bytes N` sets it."""

_DEFAULTS = {PIXELS: 89_478_485, UNPACKED: 2**32}  # Pillow's own limit; 4 GiB
_ORDINARY_RATIO = 20  # ordinary data unpack to at most this many times their size in the file
LONGEST_SIDE = 8192
"""The longest side, in pixels, that images are resized to."""


def max_pixels() -> int:
    """Return the number of pixels that an image may have."""
    return _limit(PIXELS)


def check_pixels(width: int, height: int, path: Path) -> None:
    """Raise a `DataError` where an image has more pixels than allowed."""
    if width * height > (most := max_pixels()):
        raise DataError(
            f"{path} has {width}x{height} pixels, more than the {most} that are allowed; shrink it, or trust it with "
            f"`paretoda --max-image-pixels {width * height} …` or {PIXELS}"
        )


def check_unpacked(size: int, packed: int, what: str) -> None:
    """Raise a `DataError` where something packed would fill the memory or the disk.

    Args:
        size: Bytes after unpacking.
        packed: Bytes in the file.
        what: Name of it in error messages.
    """
    if size > _ORDINARY_RATIO * packed and size > (most := _limit(UNPACKED)):
        raise DataError(
            f"{what} unpacks from {packed} to {size} bytes, more than the {most} that are allowed; if you trust it, "
            f"lift the limit with `paretoda --max-unpacked-bytes {size} …` or {UNPACKED}"
        )


def _limit(name: str) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return _DEFAULTS[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise DataError(f"{name} is {text[:40]!r}; it must be a whole number")
    return int(text)
