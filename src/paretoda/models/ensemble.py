"""Several networks as one: features side by side, the mean of the predicted probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ParallelEncoders(nn.Module):
    """Encoders that read the same inputs.

    Args:
        members: Networks from inputs (n, ...) to features (n, d).

    Examples:
        >>> ParallelEncoders([nn.Linear(4, 3), nn.Linear(4, 3)])(torch.randn(5, 4)).shape
        torch.Size([5, 6])
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the features of all members side by side, shape (n, E d)."""
        return torch.cat([member(inputs) for member in self.members], dim=1)


class MeanHead(nn.Module):
    """Heads of `ParallelEncoders`; the logits are the logarithms of the mean probabilities.

    Args:
        members: Networks from features (n, d) to logits (n, K).

    Examples:
        >>> head = MeanHead([nn.Linear(3, 2), nn.Linear(3, 2)])
        >>> head(torch.randn(5, 6)).exp().sum(1).round(decimals=4)
        tensor([1., 1., 1., 1., 1.], grad_fn=<RoundBackward1>)
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logarithm of the mean probabilities, shape (n, K)."""
        logs = torch.stack([logits.log_softmax(1) for _, logits in self.split(features)])
        return logs.logsumexp(0) - math.log(len(self.members))

    def split(self, features: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return features (n, d) and logits (n, K) of every member."""
        parts = features.chunk(len(self.members), dim=1)
        return [(part, member(part)) for part, member in zip(parts, self.members, strict=True)]
