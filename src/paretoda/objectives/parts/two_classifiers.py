"""Two classifiers of one architecture with different initial weights, for methods that compare their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.discriminator import Statistics, normalise


class HiddenLayers(nn.Module):
    """Linear layers, each followed by BatchNorm (optional), ReLU and dropout, then the logits.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of each hidden layer.
        dropout: Share of hidden units that is left out in training.
        norm: Whether there is BatchNorm.
    """

    def __init__(self, features: int, classes: int, hidden: Sequence[int], dropout: float, *, norm: bool) -> None:
        super().__init__()
        widths = [features, *hidden]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in hidden if norm)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(widths[-1], classes)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Return the logits of the rows (n, d), shape (n, K)."""
        for index, layer in enumerate(self.layers):
            rows = layer(rows)
            norm = self.norms[index] if len(self.norms) else None
            if isinstance(norm, nn.BatchNorm1d):
                rows = normalise(rows, norm, statistics)
            rows = self.dropout(torch.relu(rows))
        logits: Tensor = self.last(rows)
        return logits


class TwoClassifiers(nn.Module):
    """Two classifiers with different initial weights; the arguments are those of `HiddenLayers`."""

    def __init__(self, features: int, classes: int, hidden: Sequence[int], dropout: float, *, norm: bool) -> None:
        super().__init__()
        self.first = HiddenLayers(features, classes, hidden, dropout, norm=norm)
        self.second = HiddenLayers(features, classes, hidden, dropout, norm=norm)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Return the logits of the rows (n, d) by both classifiers, shape (2, n, K)."""
        return torch.stack([self.first(rows, statistics), self.second(rows, statistics)])


def both_cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum of the cross-entropies of the two classifiers.

    Args:
        logits: Logits of both classifiers, shape (2, n, K).
        labels: Labels, shape (n,).
    """
    return functional.cross_entropy(logits[0], labels) + functional.cross_entropy(logits[1], labels)
