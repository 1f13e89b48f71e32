"""Small images inside the page's own text."""

from __future__ import annotations

import base64
import io

from paretoda.data.samples import Image8

SIDE = 64
_PIXELS = 32  # images below are not photographs: every pixel counts


def thumbnail(image: Image8) -> str:
    """A data URI of the image, its longer side at most 64 pixels.

    Args:
        image: shape (h, w) or (h, w, 3).
    """
    from PIL import Image  # noqa: PLC0415  (only runs on images need it)

    picture = Image.fromarray(image)
    picture.thumbnail((SIDE, SIDE))
    kind = "PNG" if max(picture.size) <= _PIXELS else "JPEG"
    file = io.BytesIO()
    picture.save(file, kind, optimize=True, **({} if kind == "PNG" else {"quality": 82}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
