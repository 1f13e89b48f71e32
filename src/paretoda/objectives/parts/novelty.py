"""How new a sample looks to a model, and the split into known and unknown samples, found without labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_LEAST = 1e-4
"""Novelties nearer to 0 or 1 count as if they were so near; such differences say nothing."""


def novelties(probabilities: Tensor) -> Tensor:
    """One minus the largest probability of each sample: 0 for certain predictions, 1 - 1/K for undecided ones.

    Args:
        probabilities: Probabilities, shape (n, K).

    Returns:
        Shape (n,).

    Examples:
        >>> novelties(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
        tensor([0.0000, 0.5000])
    """
    return 1 - probabilities.amax(1)


def log_odds(novelty: Tensor) -> Tensor:
    """Return log(v / (1 - v)) of novelties, on whose scale 0.001 and 0.01 differ as much as 0.99 and 0.999."""
    return novelty.clamp(_LEAST, 1 - _LEAST).logit()


@dataclass(frozen=True)
class Split:
    """Two groups of samples by one number each.

    Args:
        threshold: Number above which a sample belongs to the higher group.
        low: Mean of the lower group.
        high: Mean of the higher group.
    """

    threshold: float
    low: float
    high: float

    def closeness(self, values: Tensor) -> Tensor:
        """Return how close samples are to the lower group: 1 up to its mean, 0 from the mean of the higher one on.

        Args:
            values: The numbers of the samples, shape (n,).
        """
        if self.high <= self.low:
            return torch.ones_like(values)
        return ((self.high - values) / (self.high - self.low)).clamp(0, 1)


def split_in_two(values: Tensor) -> Split:
    """Split samples in two groups whose means are far apart (Otsu, 1979): largest n_low n_high (high - low)².

    Where all numbers are equal, every sample belongs to the lower group.

    Args:
        values: One number for each sample, shape (n,), n > 0.

    Examples:
        >>> split_in_two(torch.tensor([1.0, 2.0, 3.0, 9.0, 11.0]))
        Split(threshold=6.0, low=2.0, high=10.0)
    """
    ordered = values.detach().double().sort().values
    count = len(ordered)
    sums, below = ordered.cumsum(0)[:-1], torch.arange(1, count, dtype=ordered.dtype, device=ordered.device)
    low, high = sums / below, (ordered.sum() - sums) / (count - below)
    gain = (below * (count - below) * (high - low).square()).masked_fill(ordered[1:] <= ordered[:-1], -1)
    if not bool((gain > 0).any()):
        return Split(float(ordered[-1]), float(ordered[0]), float(ordered[-1]))
    place = int(gain.argmax())
    return Split(float((ordered[place] + ordered[place + 1]) / 2), float(low[place]), float(high[place]))


def find_threshold(novelty: Tensor) -> float:
    """Return the novelty above which samples count as unknown, found by `split_in_two` on the scale of log-odds.

    Args:
        novelty: Novelties of the target, shape (n,), n > 0.

    Examples:
        >>> 0.02 < find_threshold(torch.tensor([0.01, 0.02, 0.02, 0.5, 0.6])) < 0.5
        True
    """
    return float(torch.tensor(split_in_two(log_odds(novelty)).threshold, dtype=torch.float64).sigmoid())
