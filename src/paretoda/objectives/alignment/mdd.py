"""MDD: no second classifier agrees with the first on the source and disagrees on the target (Zhang et al., 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Statistics, warm_up
from paretoda.types import Objective, Source, Target


def log_others(logits: Tensor, labels: Tensor) -> Tensor:
    """log(1 - σ_label) of the softmax σ, computed without a difference of nearly equal numbers.

    Args:
        logits: Logits, shape (n, K), K > 1.
        labels: Labels, shape (n,).

    Returns:
        Shape (n,).

    Examples:
        >>> log_others(torch.zeros(1, 4), torch.tensor([0])).exp()  # 1 - 1/4
        tensor([0.7500])
    """
    others = logits.scatter(1, labels.unsqueeze(1), -math.inf)
    return others.logsumexp(1) - logits.logsumexp(1)


def margin_disparity(source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor, g: float) -> Tensor:
    """γ mean log σ_ŷ on the source plus mean log(1 - σ_ŷ) on the target.

    It is large where the second classifier agrees with the first on the source but not on the target.

    Args:
        source: Logits of the second classifier on the source, shape (n, K).
        source_labels: Predictions of the first classifier (not the ground truth), shape (n,).
        target: Logits of the second classifier on the target, shape (m, K).
        target_labels: Predictions of the first classifier, shape (m,).
        g: Margin factor γ.
    """
    agreement = -functional.cross_entropy(source, source_labels)
    return g * agreement + log_others(target, target_labels).mean()


def least_disparity(g: float) -> float:
    """Value that the best second classifier reaches between equal domains, with σ_ŷ = γ / (1 + γ) everywhere."""
    return g * math.log(g / (1 + g)) - math.log(1 + g)


class Adversary(nn.Module):
    """Second classifier: one hidden layer with ReLU and dropout.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the hidden layer.
        dropout: Share of hidden units that is left out in training.
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
    """Margin disparity above its least value: non-negative once the second classifier is at its best.

    Args:
        features: Width d of the features.
        classes: Number of classes K, at least 2.
        hidden: Width of the second classifier.
        margin: Margin factor γ.
        ceiling: Strength at the end of training; the authors' 0.1 keeps the disparity from dominating the encoder.
        warm_up: Whether `advance` raises the strength from 0; otherwise, and before the first call, it is the ceiling.
        dropout: Share of hidden units that dropout leaves out in the second classifier.

    Raises:
        ValueError: There are fewer than 2 classes, or the margin is not positive.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = Mdd(features=4, classes=3)
        >>> objective.advance(1.0)
        >>> round(objective.strength, 4), objective(source, target).shape
        (0.1, torch.Size([]))
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
        """Return the strength times the disparity above its least value."""
        rows = torch.cat([source.features, target.features])
        disparity = self._disparity(call_frozen(self.adversary, rows, "batch"), source, target)
        return self.strength * (disparity - least_disparity(self.margin))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return minus the disparity, on detached features."""
        rows = torch.cat([source.features, target.features]).detach()
        return -self._disparity(self.adversary(rows, "learn"), source, target)

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = self.ceiling * (warm_up(progress) if self.warm_up else 1.0)

    @property
    def offset(self) -> float:
        """Mean cross-entropy of a second classifier that knows nothing, with the source counted γ times."""
        return -least_disparity(self.margin) / (1 + self.margin)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"margin={self.margin}, ceiling={self.ceiling}, warm_up={self.warm_up}"

    def _disparity(self, logits: Tensor, source: Source, target: Target) -> Tensor:
        n = len(source.features)
        source_labels, target_labels = source.logits.argmax(1), target.logits.argmax(1)
        return margin_disparity(logits[:n], source_labels, logits[n:], target_labels, self.margin)
