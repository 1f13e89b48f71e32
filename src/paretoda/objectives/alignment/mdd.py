"""MDD: features on which no second classifier agrees with the first on the source alone (Zhang et al., 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Statistics, warm_up
from paretoda.types import Objective, Source, Target


def log_others(logits: Tensor, labels: Tensor) -> Tensor:
    """log(1 - σ_label) of the softmax σ, without a difference of nearly equal numbers.

    Args:
        logits: shape (n, K), K > 1.
        labels: shape (n,).

    Returns:
        Shape (n,).
    """
    others = logits.scatter(1, labels.unsqueeze(1), -math.inf)
    return others.logsumexp(1) - logits.logsumexp(1)


def margin_disparity(source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor, g: float) -> Tensor:
    """γ mean log σ_ŷ on the source + mean log(1 - σ_ŷ) on the target: how much more the second classifier agrees there.

    Args:
        source: logits of the second classifier, shape (n, K).
        source_labels: what the first classifier predicts (not the ground truth), shape (n,).
        target: logits of the second classifier, shape (m, K).
        target_labels: what the first predicts, shape (m,).
        g: the margin factor γ.
    """
    agreement = -functional.cross_entropy(source, source_labels)
    return g * agreement + log_others(target, target_labels).mean()


def least_disparity(g: float) -> float:
    """What the best second classifier reaches between equal domains, with σ_ŷ = γ / (1 + γ) everywhere."""
    return g * math.log(g / (1 + g)) - math.log(1 + g)


class Adversary(nn.Module):
    """The second classifier: one hidden layer with ReLU and dropout.

    Args:
        features: width d of the features.
        classes: K.
        hidden: width of the hidden layer.
        dropout: share of hidden units that is left out in training.
    """

    def __init__(self, features: int, classes: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.first, self.last):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:  # noqa: ARG002 - it has no BatchNorm
        """Logits of the rows (n, d), shape (n, K)."""
        logits: Tensor = self.last(self.dropout(torch.relu(self.first(rows))))
        return logits


class Mdd(Objective):
    """The margin disparity above its least value: not negative once the second classifier is at its best.

    Args:
        features: width d of the features.
        classes: number of classes K, at least 2.
        hidden: width of the second classifier.
        margin: γ.
        ceiling: the strength at the end of the training; the authors' 0.1 keeps the encoder from being swept away.
        warm_up: whether `advance` raises the strength from 0; without it, and before the first call, it is the ceiling.
        dropout: in the second classifier.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 1024,
        margin: float = 4.0,
        ceiling: float = 0.1,
        warm_up: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if classes < 2 or margin <= 0:
            raise ValueError(f"MDD needs 2 classes or more and a positive margin, got {classes} and {margin}")
        self.margin, self.ceiling, self.warm_up = margin, ceiling, warm_up
        self.strength = ceiling
        self.adversary = Adversary(features, classes, hidden, dropout)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the disparity above its least value."""
        rows = torch.cat([source.features, target.features])
        disparity = self._disparity(frozen(self.adversary, rows, "batch"), source, target)
        return self.strength * (disparity - least_disparity(self.margin))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Minus the disparity, on detached features."""
        rows = torch.cat([source.features, target.features]).detach()
        return -self._disparity(self.adversary(rows, "learn"), source, target)

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = self.ceiling * (warm_up(progress) if self.warm_up else 1.0)

    def extra_repr(self) -> str:
        """Settings."""
        return f"margin={self.margin}, ceiling={self.ceiling}, warm_up={self.warm_up}"

    def _disparity(self, logits: Tensor, source: Source, target: Target) -> Tensor:
        n = len(source.features)
        source_labels, target_labels = source.logits.argmax(1), target.logits.argmax(1)
        return margin_disparity(logits[:n], source_labels, logits[n:], target_labels, self.margin)
