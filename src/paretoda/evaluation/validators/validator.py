"""The validator protocol: a score of a model without target labels; higher is better."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from paretoda.types import Snapshot


class Validator(Protocol):
    """Frozen dataclass whose fields are its settings; the same snapshot always gets the same score.

    Scores are finite, also for one sample, and for saturated and collapsed predictions. All read `snapshot.target`, the
    training part; `dataclasses.replace(snapshot, target=snapshot.held_out_target)` scores the held-out part instead.
    """

    def __call__(self, snapshot: Snapshot, /) -> float:
        """Return the score of the model that made the snapshot."""
        ...


def draw_samples(index: Tensor, count: int, seed: int) -> Tensor:
    """Positions of at most `count` samples in random order; a permuted set gives the same samples in the same order.

    Args:
        index: Positions of the samples in their set, shape (n,), which identify them.
        count: Largest number of samples.
        seed: Seed of the draw.

    Examples:
        >>> sorted(draw_samples(torch.arange(4), count=10, seed=0).tolist())
        [0, 1, 2, 3]
    """
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(index), generator=generator)[:count]
    return index.cpu().argsort(stable=True)[shuffled]


def project_features(features: Tensor, widest: int, seed: int) -> Tensor:
    """Return the features, or so many random projections of them where there are more.

    Args:
        features: Features, shape (n, d).
        widest: Largest number of columns of the result.
        seed: Seed of the projections.

    Examples:
        >>> project_features(torch.zeros(5, 40), widest=8, seed=0).shape
        torch.Size([5, 8])
    """
    width = features.shape[1]
    if width <= widest:
        return features
    generator = torch.Generator().manual_seed(seed)
    projected: Tensor = features @ torch.randn(width, widest, generator=generator).to(features) / width**0.5
    return projected
