"""The embedded data set: digits printed in matplotlib's fonts, and scikit-learn's handwritten digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Images = NDArray[np.uint8]

CLASSES = tuple("0123456789")
SIDE = 16
FONTS = (
    *("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    *("DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique"),
    *("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic"),
    *("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta"),
    *("cmr10", "cmb10", "cmss10", "cmti10", "cmtt10"),
)
SANS = tuple(name for name in FONTS if name.startswith(("DejaVuSans", "cmss", "cmtt")))
"""Fonts without serifs, and typewriters'."""
SERIF = tuple(name for name in FONTS if name not in SANS)
_CANVAS = 64
_COARSE = 8  # scikit-learn's digits are 8x8


def draw_printed_digits(
    count: int = 2100, seed: int = 0, fonts: Sequence[str] = FONTS
) -> tuple[Images, NDArray[np.int64]]:
    """Draw digits in some fonts, equally often, slightly rotated, scaled, shifted, thickened and noisy.

    Args:
        count: Number of images.
        seed: Seed of the changes.
        fonts: Names of the fonts, all of matplotlib's by default.

    Returns:
        Images (count, 16, 16), white on black, and their labels (count,).
    """
    loaded = [_load_font(name) for name in fonts]
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(CLASSES)
    images = [
        _draw_digit(CLASSES[label], loaded[place // len(CLASSES) % len(loaded)], rng)
        for place, label in enumerate(labels)
    ]
    return np.stack(images), labels.astype(np.int64)


def load_handwritten_digits() -> Images:
    """Return the 1,797 handwritten digits, shape (1797, 16, 16)."""
    coarse = _load_digits()["images"] * (255 / 16)
    return np.stack([_enlarge(image) for image in coarse])


def load_handwritten_labels() -> NDArray[np.int64]:
    """ORACLE: return the labels of the handwritten digits, for evaluation only; training must not call this."""
    labels: NDArray[np.int64] = _load_digits()["target"].astype(np.int64)
    return labels


def _load_digits() -> dict[str, NDArray[Any]]:
    from sklearn.datasets import load_digits  # noqa: PLC0415  (slow to import, and seldom needed)

    return cast("dict[str, NDArray[Any]]", load_digits())


def _load_font(name: str) -> ImageFont.FreeTypeFont:
    import matplotlib  # noqa: PLC0415  (slow to import, and seldom needed)

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf")
    return ImageFont.truetype(path, size=_CANVAS)


def _draw_digit(digit: str, font: ImageFont.FreeTypeFont, rng: np.random.Generator) -> Images:
    glyph = _draw_glyph(digit, font)
    if rng.random() < 0.3:
        glyph = glyph.filter(ImageFilter.MaxFilter(3))
    # A handwritten digit fills its box from top to bottom, so the glyph is stretched to nearly that height.
    height = _CANVAS * rng.uniform(0.8, 1.0)
    width = min(height * glyph.width / glyph.height * rng.uniform(0.85, 1.1), _CANVAS)
    glyph = glyph.resize((max(1, round(width)), round(height)), Image.Resampling.BILINEAR)
    canvas = Image.new("L", (_CANVAS, _CANVAS))
    canvas.paste(glyph, ((_CANVAS - glyph.width) // 2, (_CANVAS - glyph.height) // 2))
    turned = canvas.rotate(rng.uniform(-10, 10), Image.Resampling.BILINEAR, translate=tuple(rng.integers(-4, 5, 2)))
    coarse = np.asarray(turned.resize((_COARSE, _COARSE), Image.Resampling.BOX), dtype=np.float64)
    contrast = rng.uniform(0.7, 1.1) * 255 / coarse.max()  # thin strokes are about as bright as thick ones
    noisy = coarse * contrast + rng.normal(0, 12, coarse.shape) * (coarse > 0)
    return _enlarge(noisy)


def _draw_glyph(digit: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    left, top, right, bottom = (round(edge) for edge in font.getbbox(digit))
    image = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(image).text((-left, -top), digit, fill=255, font=font)
    return image


def _enlarge(coarse: NDArray[np.float64]) -> Images:
    pixels = Image.fromarray(np.clip(coarse, 0, 255).round().astype(np.uint8))
    return np.asarray(pixels.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
