"""Decoding of image files of any mode to 8-bit grey or RGB, upright, on white where they are transparent."""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from paretoda.data.samples import Image8
from paretoda.errors import DataError
from paretoda.io.limits import PIXELS, check_pixels, max_pixels

_JPEG = (".jpg", ".jpeg", ".jpe", ".jfif")
_NETPBM = (".ppm", ".pgm", ".pbm", ".pnm")
SUFFIXES = frozenset((*_JPEG, *_NETPBM, ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".avif", ".jp2", ".tga"))
"""Suffixes of files that are taken for images."""
ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")
"""Suffixes of archives, which must be unpacked before their images are read."""

_FORMATS = ("JPEG", "PPM", "PNG", "BMP", "GIF", "TIFF", "WEBP", "AVIF", "JPEG2000", "TGA")
_GREY = ("1", "L", "LA", "La")
_END_OF_JPEG = b"\xff\xd9"


def decode(path: Path, at_least: int = 0) -> Image8:
    """Return the pixels of a file, shape (h, w) or (h, w, 3).

    Args:
        path: Path of the file.
        at_least: A large JPEG is decoded at a fraction of its size, with sides of at least this many pixels; 0 keeps
            it.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        with open_image(path) as image:
            if at_least:
                image.draft(None, (at_least, at_least))
            ImageOps.exif_transpose(image, in_place=True)
            return _to_eight_bits(image)
    except Exception as error:  # a broken file makes decoders raise any kind of error
        raise make_read_error(path, error) from error


def open_image(path: Path) -> Image.Image:
    """Open an image and read its header, but not its pixels.

    Only decoders of the formats in `SUFFIXES` see the file, whatever its name: others, such as PostScript's, start
    programs.

    Raises:
        DataError: The image has too many pixels.
        FileNotFoundError: The path is no file.
    """
    if not os.path.isfile(path):  # opening a pipe would wait forever
        raise FileNotFoundError(f"{path} is no file")
    limit = max_pixels()
    if Image.MAX_IMAGE_PIXELS is not None and limit > Image.MAX_IMAGE_PIXELS:
        Image.MAX_IMAGE_PIXELS = limit  # the user raised the limit, so Pillow's is raised as well
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the check below is stricter
        image = Image.open(path, formats=_formats())
    try:
        check_pixels(*image.size, path)
    except DataError:
        image.close()
        raise
    return image


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


def read_pixels(image: Image.Image) -> Image8:
    """Return the pixels of an image, shape (h, w) where it is grey, otherwise (h, w, 3)."""
    return _to_eight_bits(ImageOps.exif_transpose(image))


def _to_eight_bits(image: Image.Image) -> Image8:
    if image.mode.startswith(("I", "F")):
        return _scale_to_eight_bits(image)
    grey = image.mode in _GREY
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    wanted = "L" if grey else "RGB"
    return np.asarray(image if image.mode == wanted else image.convert(wanted))


def check_file(path: Path, *, thorough: bool) -> None:
    """Raise a `DataError` where a file is not a complete image.

    Args:
        path: Path of the file.
        thorough: Whether the file is decoded. Otherwise a JPEG with its end marker and a PNG with correct checksums are
            trusted, which is far quicker.
    """
    if not thorough and _looks_complete(path):
        return
    decode(path, at_least=1)


def read_shape(path: Path) -> tuple[int, int, int]:
    """Return height, width and channels after decoding, from the file's header."""
    try:
        with open_image(path) as image:
            grey = image.mode in _GREY or image.mode.startswith(("I", "F"))
            width, height = image.size
            turned = image.getexif().get(0x0112, 1) >= 5
    except Exception as error:  # as in decode
        raise make_read_error(path, error) from error
    return (width, height, 1 if grey else 3) if turned else (height, width, 1 if grey else 3)


def _looks_complete(path: Path) -> bool:
    try:
        with open_image(path) as image:
            if image.format == "PNG":
                image.verify()
                return True
            if image.format != "JPEG":
                return False
        with path.open("rb") as file:
            file.seek(-2, 2)
            return file.read() == _END_OF_JPEG
    except Exception:  # the full decoding that follows says why
        return False


def _scale_to_eight_bits(image: Image.Image) -> Image8:
    # The scale is fixed, so that a file gives the same pixels in every set: 16 bits of range, or 0..1 for floats.
    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("not all pixels are finite")
    if image.mode == "F":
        top = 1.0 if values.max() <= 1 else 255.0
    else:
        top = 65535.0 if image.mode != "I" or values.max() > 255 else 255.0
    return np.clip(values * (255 / top), 0, 255).round().astype(np.uint8)


def make_read_error(path: Path, error: Exception) -> DataError:
    """Return the error of an image file of a data set that cannot be read."""
    return unreadable_error(
        path,
        error,
        missing="correct the path, or leave such files out with --skip-bad",
        broken="repair or delete it, or leave such files out with --skip-bad",
    )


def unreadable_error(path: Path, error: Exception, *, missing: str, broken: str) -> DataError:
    """Return the error of an image file that cannot be read.

    Args:
        path: Path of the file.
        error: Error of the decoder.
        missing: What to do where there is no such file.
        broken: What to do otherwise.
    """
    if isinstance(error, DataError):  # it already says what is wrong
        return error
    if not os.path.exists(path):
        return DataError(f"{path} does not exist; {missing}")
    if not os.path.isfile(path):
        return DataError(f"{path} is no file; {broken}")
    if isinstance(error, OSError) and error.errno is not None:  # a decoder's own errors have no number
        reason = f"cannot be read ({error.strerror})"
    elif path.stat().st_size == 0:
        reason = "is empty"
    elif isinstance(error, UnidentifiedImageError):
        reason = "is not an image"
    elif isinstance(error, Image.DecompressionBombError):
        reason = f"has more pixels than the {max_pixels()} that are allowed ({PIXELS} lifts the limit)"
    else:
        reason = f"is damaged or truncated ({error})"
    return DataError(f"{path} {reason}; {broken}")
