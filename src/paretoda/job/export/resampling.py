"""Pillow's resizing of 8-bit images, bit for bit, in operations that ONNX and torch.export have.

Pillow widens its filter where it shrinks, rounds the weights to 22 bits, and rounds to bytes after the rows and again
after the columns. Whole numbers below 2^53 are exact in float64, so that two matrix products do the same. From version
13 on the columns come first where a picture loses much height; `columns_may_come_first` asks the one that is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

_BITS = 2.0**22
Filter = Literal["bilinear", "bicubic"]


def _bilinear(distance: Tensor) -> Tensor:
    return (1 - distance.abs()).clamp(min=0)


def _bicubic(distance: Tensor) -> Tensor:
    x = distance.abs()  # Keys's cubic with a = -1/2
    near = (1.5 * x - 2.5) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * -0.5
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


_FILTERS: dict[Filter, tuple[Callable[[Tensor], Tensor], float]] = {
    "bilinear": (_bilinear, 1.0),
    "bicubic": (_bicubic, 2.0),
}
"""Name -> weight at a distance, and the distance from which on it is 0."""


def resampling_weights(places: int, size: int, kind: Filter) -> Tensor:
    """How much each of the pixels of a line counts for each new one, in units of 2^-22: shape (size, places).

    Args:
        places: pixels of the line; may be symbolic.
        size: pixels that are wanted.
        kind: of the filter.
    """
    weigh, reach = _FILTERS[kind]
    place = torch.arange(places, dtype=torch.float64)
    scale = torch.ones((), dtype=torch.float64) * places / size
    wider = scale.clamp(min=1)
    centre = ((torch.arange(size, dtype=torch.float64) + 0.5) * scale).unsqueeze(1)
    first = (centre - reach * wider + 0.5).trunc()
    last = (centre + reach * wider + 0.5).trunc()
    weights = weigh((place - centre + 0.5) * (1 / wider))
    weights = torch.where((place >= first) & (place < last), weights, torch.zeros_like(weights))
    weights = weights / weights.sum(1, keepdim=True) * _BITS
    return (weights + 0.5 * weights.sign()).trunc()


def resized(images: Tensor, size: tuple[int, int], kind: Filter, *, tall: bool) -> Tensor:
    """What `PIL.Image.resize` makes of the images: whole numbers in 0..255, float64.

    Args:
        images: whole numbers in 0..255, shape (n, c, h, w).
        size: width and height that are wanted, as Pillow has them.
        kind: of the filter.
        tall: whether a picture that loses much height is resized along its columns first.

    Returns:
        Shape (n, c, height, width).
    """
    (width, height), pixels = size, images.double()
    columns = resampling_weights(images.shape[3], width, kind).T
    rows = resampling_weights(images.shape[2], height, kind)
    usual = _rounded(rows @ _rounded(pixels @ columns))
    if not tall:
        return usual
    lost = torch.ones((), dtype=torch.float64) * images.shape[2] - height
    narrowed = torch.ones((), dtype=torch.float64) * images.shape[3] - width
    other = _rounded(_rounded(rows @ pixels) @ columns)
    return torch.where((lost > 0) & (lost > 2 * narrowed), other, usual)


def columns_may_come_first() -> bool:
    """Whether the Pillow that is installed resizes pictures that lose much height along their columns first."""
    picture = np.random.default_rng(0).integers(0, 2, (40, 10), dtype=np.uint8) * np.uint8(255)
    found = np.asarray(Image.fromarray(picture).resize((8, 8), Image.Resampling.BICUBIC))
    usual = resized(torch.from_numpy(picture)[None, None], (8, 8), "bicubic", tall=False)
    return not np.array_equal(found, usual[0, 0].numpy())


def _rounded(sums: Tensor) -> Tensor:
    return ((sums + _BITS / 2) / _BITS).floor().clamp(0, 255)
