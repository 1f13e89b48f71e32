"""Weights of samples: means that follow them, and the pair of both domains that a discriminator's loss takes."""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.types import Source, Target


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return Σ w v / Σ w, the mean where there are no weights, and 0 where all weights are 0.

    Args:
        values: Shape (n,).
        weights: Weights of the values, shape (n,), none negative; None: all are equal.

    Examples:
        >>> weighted_mean(torch.tensor([1.0, 3.0]), torch.tensor([3.0, 1.0])).item()
        1.5
    """
    if weights is None:
        return values.mean()
    weights = weights.to(values)
    return (weights * values).sum() / weights.sum().clamp(min=torch.finfo(values.dtype).tiny)


def domain_weights(source: Source, target: Target) -> tuple[Tensor, Tensor] | None:
    """Return the weights of the samples of both domains, each with mean 1; None where neither has weights.

    Args:
        source: Source of a step.
        target: Target of a step.
    """
    if source.weights is None and target.weights is None:
        return None
    return _scale(source.weights, source.features), _scale(target.weights, target.features)


def _scale(weights: Tensor | None, rows: Tensor) -> Tensor:
    """Return the weights divided by their mean, shape (n,); all are 0 where their sum is."""
    if weights is None:
        return rows.new_ones(len(rows))
    weights = weights.to(rows)
    return weights / weights.mean().clamp(min=torch.finfo(rows.dtype).tiny)
