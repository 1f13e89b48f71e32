"""How much a file may unpack to: a small file from a stranger must not fill the memory.

The limits are the environment's, not settings of a run: a run's own files must not be able to lift them.
"""

from __future__ import annotations

import os
from pathlib import Path

from paretoda.errors import DataError

PIXELS = "PARETODA_MAX_IMAGE_PIXELS"
"""Lifts the limit of an image; `paretoda --max-image-pixels N` sets it."""
UNPACKED = "PARETODA_MAX_UNPACKED_BYTES"
"""Lifts the limit of an archive; `paretoda --max-unpacked-bytes N` sets it."""

LONGEST_SIDE = 8192
"""The longest side, in pixels, that images are resized to."""

_USUAL = {PIXELS: 89_478_485, UNPACKED: 2**32}  # Pillow's own limit; 4 GiB
_PACKED = 20  # data that are merely large unpack to no more than so many times their size in the file


def max_pixels() -> int:
    """Pixels that an image may have."""
    return _limit(PIXELS)


def check_pixels(width: int, height: int, path: Path) -> None:
    """Raise where an image has more pixels than allowed."""
    if width * height > (most := max_pixels()):
        raise DataError(
            f"{path} has {width}x{height} pixels, more than the {most} that are allowed; shrink it, or trust it with "
            f"`paretoda --max-image-pixels {width * height} …` or {PIXELS}"
        )


def check_unpacked(size: int, packed: int, what: str) -> None:
    """Raise where something packed would fill the memory or the disk.

    Args:
        size: bytes after unpacking.
        packed: bytes in the file.
        what: an error calls it so.
    """
    if size > _PACKED * packed and size > (most := _limit(UNPACKED)):
        raise DataError(
            f"{what} unpacks from {packed} to {size} bytes, more than the {most} that are allowed; if you trust it, "
            f"lift the limit with `paretoda --max-unpacked-bytes {size} …` or {UNPACKED}"
        )


def _limit(name: str) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return _USUAL[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise DataError(f"{name} is {text[:40]!r}; it must be a whole number")
    return int(text)
