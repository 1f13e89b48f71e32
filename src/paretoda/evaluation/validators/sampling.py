"""Seeded draws that depend on which samples there are and not on the order in which they come."""

from __future__ import annotations

import torch
from torch import Tensor


def draw(index: Tensor, count: int, seed: int) -> Tensor:
    """Positions of at most `count` samples in random order; a permuted set gives the same samples in the same order.

    Args:
        index: of the samples in their set, shape (n,): their identity.
        count: how many are wanted.
        seed: of the draw.
    """
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(index), generator=generator)[:count]
    return index.cpu().argsort(stable=True)[shuffled]
