"""A discriminator tells source rows (positive scores) from target rows (negative scores).

Both domains go through it in one batch: normalised apart, the gap between them would vanish before it is seen.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.normalisation import Statistics, normalise


def domain_cross_entropy(source: Tensor, target: Tensor, weights: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Half the source's mean of -log D plus half the target's mean of -log(1 - D), from scores; log 2 where D = 1/2.

    Args:
        source: scores (log-odds of "source") of source rows, shape (n,).
        target: scores of target rows, shape (m,).
        weights: of the source rows (n,) and of the target rows (m,); None weighs all alike.
    """
    source_losses, target_losses = functional.softplus(-source), functional.softplus(target)
    if weights is not None:
        source_losses, target_losses = weights[0] * source_losses, weights[1] * target_losses
    return (source_losses.mean() + target_losses.mean()) / 2


class Discriminator(nn.Module):
    """Two hidden layers with BatchNorm and ReLU, then one score for each output.

    Args:
        inputs: width d of the rows.
        hidden: width of the hidden layers.
        outputs: 1 for one discriminator; K for K that share their hidden layers.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int = 1) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.first_norm = nn.BatchNorm1d(hidden)
        self.second = nn.Linear(hidden, hidden)
        self.second_norm = nn.BatchNorm1d(hidden)
        self.last = nn.Linear(hidden, outputs)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Scores of the rows (n, d), shape (n, outputs)."""
        once = torch.relu(normalise(self.first(rows), self.first_norm, statistics))
        twice = torch.relu(normalise(self.second(once), self.second_norm, statistics))
        scores: Tensor = self.last(twice)
        return scores
