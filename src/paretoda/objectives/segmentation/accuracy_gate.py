"""A discriminator is heard once it tells the domains apart: before, its answers point nowhere (CyCADA's code)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

MEMORY = 100
"""Steps whose accuracies count."""


def accuracy(source: Tensor, target: Tensor, *, border: float) -> Tensor:
    """The share of scores on the right side of the border, either domain counting half; ½ where all are alike.

    Args:
        source: scores, any shape; right above the border.
        target: scores, any shape; right at the border or below.
        border: between "source" and "target".
    """
    return ((source > border).float().mean() + (target <= border).float().mean()) / 2


class AccuracyGate(nn.Module):
    """Which discriminators had a mean accuracy above the gate in the last hundred steps; none at first.

    Args:
        discriminators: how many there are.
        gate: accuracy, above 0 and below 1.
    """

    recent: Tensor

    def __init__(self, discriminators: int, gate: float) -> None:
        super().__init__()
        if not 0 < gate < 1:
            raise ValueError(f"gate must be an accuracy below 1, or 0 for none, got {gate}")
        self.gate = gate
        self.register_buffer("recent", torch.full((MEMORY, discriminators), math.nan))

    def forward(self) -> list[bool]:
        """Of every discriminator whether it is heard; steps that have not been are left out of the mean."""
        heard: list[bool] = (self.recent.nanmean(0) > self.gate).tolist()
        return heard

    @torch.no_grad()
    def learn(self, accuracies: Tensor) -> None:
        """Remember those of a step, shape (discriminators,), and forget those of the oldest."""
        self.recent.copy_(torch.cat([self.recent[1:], accuracies.to(self.recent).unsqueeze(0)]))

    def extra_repr(self) -> str:
        """Settings."""
        return f"gate={self.gate}"
