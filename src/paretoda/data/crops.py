"""Ten crops of an image, as CDAN and its relatives test: the corners and the middle, and their mirror images."""

from __future__ import annotations

import torch
from torch import Tensor

CROPS = 10


def ten_crops(images: Tensor, size: int) -> Tensor:
    """Shape (n, 10, c, size, size): upper left, upper right, lower left, lower right, middle; then the five mirrored.

    Args:
        images: shape (n, c, r, r), r at least `size`.
        size: side of a crop.
    """
    last, middle = images.shape[-1] - size, (images.shape[-1] - size) // 2
    places = ((0, 0), (0, last), (last, 0), (last, last), (middle, middle))
    views = [images[..., top : top + size, left : left + size] for top, left in places]
    return torch.stack([*views, *(view.flip(-1) for view in views)], dim=1)
