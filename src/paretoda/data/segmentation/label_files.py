"""Label files: PNGs whose pixels are ids, with 8 bits, with a palette, or with SYNTHIA's 16 bits."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from paretoda.data.open.decoding import open_image, unreadable_error
from paretoda.errors import DataError
from paretoda.types import IGNORE

_PNG = b"\x89PNG\r\n\x1a\n"
_LOW_BYTES = {"RGB": "RGB;16L", "RGBA": "RGBA;16L"}


def read_ids(path: Path) -> NDArray[np.uint8]:
    """Return the ids of a label file, shape (h, w); a palette's colours are ignored.

    Raises:
        DataError: The file cannot be read, or has ids above 255.
    """
    try:
        with open_image(path) as image:
            values = _values(image, path)
    except DataError:
        raise
    except Exception as error:  # a broken file makes decoders raise any kind of error
        raise _read_error(path, error) from error
    if values.size and not 0 <= int(values.min()) <= int(values.max()) <= IGNORE:
        wrong = values.min() if values.min() < 0 else values.max()
        raise DataError(f"{path} has the label {wrong}; labels are ids in 0..255, with 255 for pixels without a label")
    return values.astype(np.uint8)


def read_size(path: Path) -> tuple[int, int]:
    """Return width and height from the file's header."""
    try:
        with open_image(path) as image:
            return image.size
    except Exception as error:  # as above
        raise _read_error(path, error) from error


def read_palette(path: Path) -> list[tuple[int, ...]] | None:
    """Return the colours of the ids, or None where the file has no palette."""
    try:
        with open_image(path) as image:
            entries = image.getpalette() if image.mode == "P" else None
    except Exception as error:  # as above
        raise _read_error(path, error) from error
    return None if entries is None else [tuple(entries[k : k + 3]) for k in range(0, len(entries), 3)]


def _values(image: Image.Image, path: Path) -> NDArray[Any]:
    if image.mode in ("L", "P", "1") or image.mode.startswith("I"):
        values = np.asarray(image)
        return values.astype(np.uint8) if values.dtype == np.bool_ else values
    if image.mode in _LOW_BYTES and _bits(path) == 16:
        return _first_channel(path)
    raise DataError(
        f"{path} is a coloured image ({image.mode}) where a label map is wanted; "
        "give PNGs of one 8-bit channel, or with a palette, whose values are ids"
    )


def _first_channel(path: Path) -> NDArray[np.uint16]:
    # Pillow keeps only the high bytes of 16-bit colours, which are all 0 in SYNTHIA. Read as little-endian, the bytes
    # that it takes for the high ones are the low ones: the ids.
    content = path.read_bytes()
    high, low = Image.open(io.BytesIO(content)), Image.open(io.BytesIO(content))
    with high, low:
        low.tile = [_change_tile_format(tile, _LOW_BYTES[low.mode]) for tile in low.tile]
        first = np.asarray(high)[..., 0].astype(np.uint16)
        return np.asarray((first << 8) | np.asarray(low)[..., 0])


def _change_tile_format(tile: Any, raw: str) -> Any:
    return tile._replace(args=raw) if hasattr(tile, "_replace") else (*tile[:3], raw)


def _bits(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(25)
    return head[24] if head.startswith(_PNG) else 8


def _read_error(path: Path, error: Exception) -> DataError:
    return unreadable_error(
        path,
        error,
        missing="add this label file, or remove its image",
        broken="repair or delete it with its image, or leave such pairs out with --skip-bad",
    )
