"""Gaussian kernels of a batch with itself, from squared distances."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretoda.objectives.full_precision import full_precision

SCALES = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Bandwidths of the five kernels of DAN and JAN, in mean squared distances."""


@full_precision
def squared_distances(rows: Tensor) -> Tensor:
    """Squared distances of all pairs of rows, in a product of matrices.

    Args:
        rows: shape (n, d).

    Returns:
        Shape (n, n), not negative.
    """
    rows = rows - rows.detach().mean(0)  # distances do not feel it, and less is lost in the difference below
    squares = rows.square().sum(1)
    return (squares.unsqueeze(1) + squares - 2 * rows @ rows.T).clamp(min=0)


def gaussian(distances: Tensor, variance: float | Tensor) -> Tensor:
    """exp(-distance / (2 variance)) of every pair.

    Args:
        distances: squared, shape (n, n).
        variance: σ².
    """
    return torch.exp(-distances / (2 * variance))


def adaptive_gaussians(distances: Tensor, scales: Sequence[float] = SCALES) -> Tensor:
    """The sum of Gaussian kernels whose bandwidths are multiples of the mean squared distance.

    That mean is taken over all pairs, the zeros of the diagonal among them, and is a constant: otherwise the encoder
    could blur the kernels, by a few samples far away, instead of bringing the domains together.

    Args:
        distances: squared, shape (n, n).
        scales: σ² of each kernel over the mean.
    """
    mean = distances.detach().mean().clamp(min=torch.finfo(distances.dtype).eps ** 2)  # rows may be all alike
    return torch.stack([gaussian(distances, scale * mean) for scale in scales]).sum(0)
