"""Two classifiers that both know the source: where they differ on the target, the target lies off the source.

The classifiers look for such places, the encoder moves the target away from them (Saito et al., 2018).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Statistics, normalise
from paretoda.types import Objective, Source, Target


class HiddenLayers(nn.Module):
    """Linear layers, each with ReLU and dropout behind it (and BatchNorm before the ReLU), then the logits.

    Args:
        features: width d of the features.
        classes: K.
        hidden: width of each hidden layer.
        dropout: share of hidden units that is left out in training.
        norm: whether there is BatchNorm.
    """

    def __init__(self, features: int, classes: int, hidden: Sequence[int], dropout: float, *, norm: bool) -> None:
        super().__init__()
        widths = [features, *hidden]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in hidden if norm)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(widths[-1], classes)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Logits of the rows (n, d), shape (n, K)."""
        for index, layer in enumerate(self.layers):
            rows = layer(rows)
            norm = self.norms[index] if len(self.norms) else None
            if isinstance(norm, nn.BatchNorm1d):
                rows = normalise(rows, norm, statistics)
            rows = self.dropout(torch.relu(rows))
        logits: Tensor = self.last(rows)
        return logits


class TwoClassifiers(nn.Module):
    """Two classifiers of one shape and different beginnings; the arguments are those of `HiddenLayers`."""

    def __init__(self, features: int, classes: int, hidden: Sequence[int], dropout: float, *, norm: bool) -> None:
        super().__init__()
        self.first = HiddenLayers(features, classes, hidden, dropout, norm=norm)
        self.second = HiddenLayers(features, classes, hidden, dropout, norm=norm)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Logits of the rows (n, d) by both, shape (2, n, K)."""
        return torch.stack([self.first(rows, statistics), self.second(rows, statistics)])


def both_cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """The sum of the two classifiers' cross-entropies.

    Args:
        logits: of both, shape (2, n, K).
        labels: shape (n,).
    """
    return functional.cross_entropy(logits[0], labels) + functional.cross_entropy(logits[1], labels)


def imbalance(probabilities: Tensor) -> Tensor:
    """-mean_k log(mean_i p_ik + 1e-6): least, log K, where all classes are predicted equally often.

    Args:
        probabilities: p, shape (n, K).
    """
    return -(probabilities.mean(0) + 1e-6).log().mean()


class ClassifierDiscrepancy(Objective):
    """How far apart on the target two classifiers are that learn the source; abstract: what "apart" means.

    They are private networks: the model's own head learns the source beside them, and predicts.

    Args:
        features: width d of the features.
        classes: number of classes K.
        hidden: width of the classifiers' two hidden layers.
        dropout: in the classifiers.
        strength: τ, of value and gradient, and of the classifiers' share in it.
        balance: of the `imbalance` that keeps the classifiers from giving the whole target to one class.
        encoder_updates: how often in a step the encoder lowers it; 4 in the paper.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int,
        dropout: float,
        strength: float,
        balance: float,
        encoder_updates: int,
    ) -> None:
        super().__init__()
        if encoder_updates < 1:
            raise ValueError(f"encoder_updates must be 1 or more, got {encoder_updates}")
        self.strength, self.balance, self.encoder_updates = strength, balance, encoder_updates
        self.classifiers = TwoClassifiers(features, classes, (hidden, hidden), dropout, norm=True)

    @abstractmethod
    def discrepancy(self, one: Tensor, other: Tensor) -> Tensor:
        """How far apart the predictions of the two classifiers are, each of shape (n, K); not negative."""

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the discrepancy on the target."""
        rows = torch.cat([source.features, target.features])
        logits = frozen(self.classifiers, rows, "batch" if self.training else "running")
        return self.strength * self.discrepancy(*logits[:, len(source.features) :].softmax(2))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Both cross-entropies on the source minus strength times the discrepancy, on detached features."""
        rows = torch.cat([source.features, target.features]).detach()
        logits = self.classifiers(rows, "learn" if self.training else "running")
        one, other = logits[:, len(source.features) :].softmax(2)
        learned = both_cross_entropies(logits[:, : len(source.features)], source.labels)
        balanced = self.balance * (imbalance(one) + imbalance(other))
        return learned + balanced - self.strength * self.discrepancy(one, other)

    def extra_repr(self) -> str:
        """Settings."""
        return f"strength={self.strength}, balance={self.balance}, encoder_updates={self.encoder_updates}"
