"""The squared maximum mean discrepancy of two domains (Gretton et al., 2012), and the Gaussian kernels for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision

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


Estimator = Literal["v", "u", "linear"]
"""All pairs; all pairs of different samples; neighbours in the batch only."""


def check_estimator(estimator: str) -> None:
    """Refuse an unknown estimator."""
    if estimator not in get_args(Estimator):
        raise ValueError(f"estimator must be one of {', '.join(get_args(Estimator))}, got {estimator!r}")


def squared_discrepancy(kernel: Tensor, sources: int, estimator: Estimator) -> Tensor:
    """How much more alike samples of one domain are than samples of different domains.

    "v" is never negative, and 0 for equal batches. "u" and "linear" have the right expectation instead and may be
    negative; "linear" depends on the order of the samples, and pairs the domains one to one.

    Args:
        kernel: of source and target together, shape (n + m, n + m).
        sources: n.
        estimator: see `Estimator`.
    """
    within_source, within_target = kernel[:sources, :sources], kernel[sources:, sources:]
    across = kernel[:sources, sources:]
    if estimator == "linear":
        return _linear(within_source, within_target, across)
    mean = Tensor.mean if estimator == "v" else _mean_of_others
    return mean(within_source) + mean(within_target) - 2 * across.mean()


def _mean_of_others(kernel: Tensor) -> Tensor:
    """Over pairs of different samples; 0 where there is only one sample."""
    n = len(kernel)
    return (kernel.sum() - kernel.diagonal().sum()) / max(n * (n - 1), 1)


def _linear(within_source: Tensor, within_target: Tensor, across: Tensor) -> Tensor:
    """Every sample with the next one of the batch, the last with the first."""
    if across.shape[0] != across.shape[1]:
        raise ValueError(
            f"the linear estimator needs as many source as target samples, got {across.shape[0]} and {across.shape[1]}"
        )
    following = [matrix.roll(-1, 1).diagonal() for matrix in (within_source, within_target, across, across.T)]
    return (following[0] + following[1] - following[2] - following[3]).mean()
