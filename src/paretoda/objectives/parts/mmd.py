"""Squared maximum mean discrepancy of two domains (Gretton et al., 2012) and the Gaussian kernels for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision

SCALES = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Bandwidths of the five kernels of DAN and JAN, in mean squared distances."""
Estimator = Literal["v", "u", "linear"]
"""Pairs that are averaged: all; all of different samples; neighbours in the batch only."""


@full_precision
def squared_distances(rows: Tensor) -> Tensor:
    """Squared distances of all pairs of rows, computed with one matrix product.

    Args:
        rows: Samples, shape (n, d).

    Returns:
        Shape (n, n), non-negative.
    """
    rows = rows - rows.detach().mean(0)  # changes no distance and reduces cancellation below
    squares = rows.square().sum(1)
    return (squares.unsqueeze(1) + squares - 2 * rows @ rows.T).clamp(min=0)


def gaussian(distances: Tensor, variance: float | Tensor) -> Tensor:
    """exp(-distance / (2 variance)) of every pair.

    Args:
        distances: Squared distances, shape (n, n).
        variance: Variance σ².
    """
    return torch.exp(-distances / (2 * variance))


def adaptive_gaussians(distances: Tensor, scales: Sequence[float] = SCALES) -> Tensor:
    """Sum of Gaussian kernels whose bandwidths are multiples of the mean squared distance.

    The mean is over all pairs, including the zeros of the diagonal, and is a constant: otherwise the encoder could blur
    the kernels with a few distant samples instead of bringing the domains together.

    Args:
        distances: Squared distances, shape (n, n).
        scales: σ² of each kernel over the mean.
    """
    mean = distances.detach().mean().clamp(min=torch.finfo(distances.dtype).eps ** 2)  # all rows may be equal
    return torch.stack([gaussian(distances, scale * mean) for scale in scales]).sum(0)


def check_estimator(estimator: str) -> None:
    """Raise ValueError unless the estimator is known."""
    if estimator not in get_args(Estimator):
        raise ValueError(f"estimator must be one of {', '.join(get_args(Estimator))}, got {estimator!r}")


def squared_discrepancy(kernel: Tensor, sources: int, estimator: Estimator) -> Tensor:
    """Squared discrepancy: how much more alike samples of one domain are than samples of different domains.

    "v" is never negative, and 0 for equal batches. "u" and "linear" have the right expectation instead and may be
    negative; "linear" depends on the order of the samples and pairs the domains one to one.

    Args:
        kernel: Kernel of source and target together, shape (n + m, n + m).
        sources: Number n of source samples.
        estimator: See `Estimator`.

    Examples:
        >>> rows = torch.tensor([[0.0], [1.0]])
        >>> kernel = gaussian(squared_distances(torch.cat([rows, rows])), 1.0)
        >>> squared_discrepancy(kernel, 2, "v").item()
        0.0
    """
    within_source, within_target = kernel[:sources, :sources], kernel[sources:, sources:]
    across = kernel[:sources, sources:]
    if estimator == "linear":
        return _linear(within_source, within_target, across)
    mean = Tensor.mean if estimator == "v" else _mean_of_others
    return mean(within_source) + mean(within_target) - 2 * across.mean()


def _mean_of_others(kernel: Tensor) -> Tensor:
    """Mean over pairs of different samples; 0 for a single sample."""
    n = len(kernel)
    return (kernel.sum() - kernel.diagonal().sum()) / max(n * (n - 1), 1)


def _linear(within_source: Tensor, within_target: Tensor, across: Tensor) -> Tensor:
    """Pair every sample with the next one of the batch, and the last with the first."""
    if across.shape[0] != across.shape[1]:
        raise ValueError(
            f"the linear estimator needs as many source as target samples, got {across.shape[0]} and {across.shape[1]}"
        )
    following = [matrix.roll(-1, 1).diagonal() for matrix in (within_source, within_target, across, across.T)]
    return (following[0] + following[1] - following[2] - following[3]).mean()
