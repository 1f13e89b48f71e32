"""Pillow's resampling in torch, bit for bit, so that an exported file resizes images as `paretoda predict` does."""

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
"""Name -> weight as a function of distance, and the distance from which on it is 0."""


def resampling_weights(places: int, size: int, kind: Filter) -> Tensor:
    """Return the weight of each pixel of a line in each new pixel, in units of 2^-22, shape (size, places).

    Args:
        places: Number of pixels of the line; may be symbolic.
        size: Number of new pixels.
        kind: Name of the filter.
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


def resize(images: Tensor, size: tuple[int, int], kind: Filter, *, tall: bool) -> Tensor:
    """Resize images as `PIL.Image.resize` does, bit for bit; the results are whole numbers in 0..255, as float64.

    Args:
        images: Whole numbers in 0..255, shape (n, c, h, w).
        size: New width and height, in Pillow's order.
        kind: Name of the filter.
        tall: Whether an image that loses much height is resized along its columns first.

    Returns:
        Shape (n, c, height, width).
    """
    (width, height), pixels = size, images.double()
    columns = resampling_weights(images.shape[3], width, kind).T
    rows = resampling_weights(images.shape[2], height, kind)
    usual = _round(rows @ _round(pixels @ columns))
    if not tall:
        return usual
    lost = torch.ones((), dtype=torch.float64) * images.shape[2] - height
    narrowed = torch.ones((), dtype=torch.float64) * images.shape[3] - width
    other = _round(_round(rows @ pixels) @ columns)
    return torch.where((lost > 0) & (lost > 2 * narrowed), other, usual)


def columns_may_come_first() -> bool:
    """Return whether the installed Pillow resizes images that lose much height along their columns first."""
    picture = np.random.default_rng(0).integers(0, 2, (40, 10), dtype=np.uint8) * np.uint8(255)
    found = np.asarray(Image.fromarray(picture).resize((8, 8), Image.Resampling.BICUBIC))
    usual = resize(torch.from_numpy(picture)[None, None], (8, 8), "bicubic", tall=False)
    return not np.array_equal(found, usual[0, 0].numpy())


def _round(sums: Tensor) -> Tensor:
    return ((sums + _BITS / 2) / _BITS).floor().clamp(0, 255)
