"""The validator protocol: a score of a model without target labels; higher is better."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from paretoda.types import Snapshot


class Validator(Protocol):
    """A frozen dataclass: its fields are its settings, and the same snapshot always gets the same score.

    Scores are finite, also for one sample, for saturated and for collapsed predictions. All read `snapshot.target`, the
    training part; `dataclasses.replace(snapshot, target=snapshot.held_out_target)` scores the held-out part instead.
    """

    def __call__(self, snapshot: Snapshot, /) -> float:
        """The score of the model that made the snapshot."""
        ...


def draw_samples(index: Tensor, count: int, seed: int) -> Tensor:
    """Positions of at most `count` samples in random order; a permuted set gives the same samples in the same order.

    Args:
        index: Of the samples in their set, shape (n,): their identity.
        count: How many are wanted.
        seed: Seed of the draw.
    """
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(index), generator=generator)[:count]
    return index.cpu().argsort(stable=True)[shuffled]
