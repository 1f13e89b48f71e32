"""The squared maximum mean discrepancy of two domains, from the kernel of their samples (Gretton et al., 2012)."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

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
