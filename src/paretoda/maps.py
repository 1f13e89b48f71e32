"""Maps at another resolution: logits are mixed, labels are not; in both, corners lie on corners."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def resize_maps(maps: Tensor, size: Sequence[int]) -> Tensor:
    """Maps (n, K, h, w) at another resolution (n, K, *size), bilinearly, with the corners' pixels on each other.

    Args:
        maps: Shape (n, K, h, w).
        size: Height and width, usually those of the image or of its labels.
    """
    if tuple(maps.shape[-2:]) == tuple(size):
        return maps
    return functional.interpolate(maps, size=tuple(size), mode="bilinear", align_corners=True)


def resize_labels(labels: Tensor, size: tuple[int, int]) -> Tensor:
    """Label maps at another resolution: every place takes the label of the nearest pixel, none is mixed.

    Args:
        labels: Shape (n, H, W).
        size: (h, w).

    Returns:
        Shape (n, h, w).
    """
    ends = zip(labels.shape[-2:], size, strict=True)
    rows, columns = (torch.linspace(0, last - 1, count, device=labels.device).round().long() for last, count in ends)
    return labels[:, rows[:, None], columns]
