"""Images inside a page's own text, as data URIs."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Literal

from paretoda.data.samples import Image8

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 64
"""Longest side of a thumbnail, in pixels."""
WIDTH = 320
"""Largest width of a picture on a page, in pixels."""
_PIXELS = 32  # smaller images are not photographs, and every pixel counts


def make_thumbnail(image: Image8) -> str:
    """Return a data URI of the image, its longer side at most 64 pixels.

    Args:
        image: Image, shape (h, w) or (h, w, 3).
    """
    from PIL import Image  # noqa: PLC0415  (only runs on images need it)

    picture = Image.fromarray(image)
    picture.thumbnail((SIDE, SIDE))
    return _encode(picture, "PNG" if max(picture.size) <= _PIXELS else "JPEG")


def make_picture(image: Image8, *, photo: bool) -> str:
    """Return a data URI of the image, at most 320 pixels wide.

    Args:
        image: Image, shape (h, w) or (h, w, 3).
        photo: Whether it is a photograph; otherwise it keeps its exact colours.
    """
    from PIL import Image  # noqa: PLC0415

    picture = Image.fromarray(image)
    if picture.width > WIDTH:
        size = (WIDTH, max(1, round(picture.height * WIDTH / picture.width)))
        picture = picture.resize(size, Image.Resampling.BICUBIC if photo else Image.Resampling.NEAREST)
    return _encode(picture, "JPEG" if photo else "PNG")


def _encode(picture: Image, kind: Literal["PNG", "JPEG"]) -> str:
    file = io.BytesIO()
    picture.save(file, kind, optimize=True, **({} if kind == "PNG" else {"quality": 82}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
