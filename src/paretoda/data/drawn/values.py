"""Domains for regression that need no files: digits that are turned by an angle, and diabetes of scikit-learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paretoda.data.drawn.digits import draw_printed_digits, load_handwritten_digits

_STEEPEST = 45.0
"""Largest angle in degrees: beyond, a 6 becomes a 9."""
_BRIGHTEST, _SQUARE = 160, 4
"""Brightness and side of the squares behind cluttered digits."""
_AGE, _BMI = 0, 2
"""Columns of the diabetes data."""


def turn_digits(images: NDArray[np.uint8], seed: int) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Turn every image by an angle of its own; return the images and the angles in degrees.

    Args:
        images: Grey images, shape (n, h, w).
        seed: Seed of the angles, which are uniform between -45 and 45 degrees.

    Examples:
        >>> turned, angles = turn_digits(load_handwritten_digits()[:5], seed=0)
        >>> turned.shape, angles.round(1).tolist()
        ((5, 16, 16), [12.3, -20.7, -41.3, -43.5, 28.2])
    """
    from scipy.ndimage import rotate  # noqa: PLC0415  (slow to import)

    angles = np.random.default_rng(seed).uniform(-_STEEPEST, _STEEPEST, len(images))
    background = int(np.median(images[:, 0, 0]))
    turned = [
        rotate(image.astype(np.float64), angle, reshape=False, order=1, cval=background)
        for image, angle in zip(images, angles, strict=True)
    ]
    return np.clip(np.rint(turned), 0, 255).astype(np.uint8), angles


def clutter(images: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """Lay grey squares behind the images, as the difference of both, like photographs behind the digits of MNIST-M.

    Args:
        images: Grey images, shape (n, h, w), with sides that are multiples of 4.
        seed: Seed of the squares.
    """
    count, height, width = images.shape
    coarse = np.random.default_rng(seed).uniform(0, _BRIGHTEST, (count, height // _SQUARE, width // _SQUARE))
    squares = coarse.repeat(_SQUARE, axis=1).repeat(_SQUARE, axis=2)
    return np.clip(np.abs(images.astype(np.float64) - squares), 0, 255).astype(np.uint8)


def load_value_domain(name: str) -> tuple[NDArray[np.generic], NDArray[np.float64]]:
    """Return the samples and values of an embedded domain.

    Args:
        name: "turned-printed", "turned-handwritten" or "turned-cluttered"; or "diabetes-" and "slim", "heavy", "young"
            or "old": the half of the patients below or above the median of their body mass index or age.

    Examples:
        >>> x, y = load_value_domain("diabetes-slim")
        >>> x.shape, y[:3].tolist()
        ((223, 10), [75.0, 206.0, 135.0])
    """
    if name == "turned-printed":
        return turn_digits(draw_printed_digits()[0], seed=1)
    if name == "turned-handwritten":
        return turn_digits(load_handwritten_digits(), seed=2)
    if name == "turned-cluttered":
        turned, angles = turn_digits(load_handwritten_digits(), seed=3)
        return clutter(turned, seed=4), angles
    from sklearn.datasets import load_diabetes  # noqa: PLC0415  (slow to import)

    x, y = load_diabetes(return_X_y=True)
    column = x[:, _BMI if name in ("diabetes-slim", "diabetes-heavy") else _AGE]
    below = column <= np.median(column)
    chosen = below if name in ("diabetes-slim", "diabetes-young") else ~below
    return x[chosen].astype(np.float32), y[chosen]


VALUE_DOMAINS = (
    "turned-printed",
    "turned-handwritten",
    "turned-cluttered",
    *(f"diabetes-{half}" for half in ("slim", "heavy", "young", "old")),
)
"""Names that `load_value_domain` takes."""
