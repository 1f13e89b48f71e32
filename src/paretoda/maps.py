"""Maps at another resolution: logits are interpolated, labels are not; in both, corners stay on corners."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def resize_maps(maps: Tensor, size: Sequence[int]) -> Tensor:
    """Resize maps (n, K, h, w) bilinearly to (n, K, *size), with the corner pixels on each other.

    Args:
        maps: Maps, shape (n, K, h, w).
        size: Height and width, usually those of the image or of its labels.

    Returns:
        Shape (n, K, *size).

    Examples:
        >>> resize_maps(torch.tensor([[[[0.0, 2.0]]]]), (1, 3))
        tensor([[[[0., 1., 2.]]]])
    """
    if tuple(maps.shape[-2:]) == tuple(size):
        return maps
    return functional.interpolate(maps, size=tuple(size), mode="bilinear", align_corners=True)


def resize_labels(labels: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize label maps: every position takes the label of the nearest pixel.

    Args:
        labels: Labels, shape (n, H, W).
        size: Height and width (h, w).

    Returns:
        Shape (n, h, w).

    Examples:
        >>> resize_labels(torch.tensor([[[0, 1, 2]]]), (1, 2))
        tensor([[[0, 2]]])
    """
    ends = zip(labels.shape[-2:], size, strict=True)
    rows, columns = (torch.linspace(0, last - 1, count, device=labels.device).round().long() for last, count in ends)
    return labels[:, rows[:, None], columns]
