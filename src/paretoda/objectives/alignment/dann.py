"""DANN: a discriminator of the features cannot tell the domains apart (Ganin et al., 2016)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, warm_up
from paretoda.objectives.parts.weights import domain_weights
from paretoda.types import Objective, Source, Target


def divergence(source: Tensor, target: Tensor, weights: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Information of the discriminator: log 2 minus its cross-entropy, at its best the Jensen-Shannon divergence.

    Args:
        source: Scores of source rows, shape (n,).
        target: Scores of target rows, shape (m,).
        weights: Weights of the source rows (n,) and of the target rows (m,), each with mean 1; None: all are equal.

    Examples:
        >>> divergence(torch.zeros(4), torch.zeros(4)).item()  # the discriminator knows nothing
        0.0
    """
    return math.log(2) - domain_cross_entropy(source, target, weights)


class Dann(Objective):
    """Information that a discriminator of the features has about their domain.

    The strength scales what the encoder lowers, value and gradient; the discriminator learns at full strength.

    Args:
        features: Width d of the features.
        classes: Number of classes (not used).
        hidden: Width of the discriminator; the paper has 1024, and on features 256 is as good at half the cost.
        warm_up: Whether `advance` raises the strength from 0 to 1; otherwise, and before the first call, it is 1.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = Dann(features=4, classes=3)
        >>> objective.advance(0.0)  # the warm-up begins at strength 0
        >>> objective(source, target).item() == 0, bool(objective.private_loss(source, target) > 0)
        (True, True)
    """

    label_sets = ("closed", "partial", "open")

    def __init__(self, features: int, classes: int, *, hidden: int = 256, warm_up: bool = True) -> None:
        super().__init__()
        self.features, self.classes, self.warm_up = features, classes, warm_up
        self.strength = 1.0
        self.discriminator = Discriminator(features, hidden)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the divergence."""
        rows = torch.cat([source.features, target.features])
        scores = call_frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
        count = len(source.features)
        return self.strength * divergence(scores[:count], scores[count:], domain_weights(source, target))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the discriminator's cross-entropy on detached features."""
        rows = torch.cat([source.features, target.features]).detach()
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        count = len(source.features)
        return domain_cross_entropy(scores[:count], scores[count:], domain_weights(source, target))

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    @property
    def offset(self) -> float:
        """Loss of a discriminator that knows nothing."""
        return math.log(2)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"warm_up={self.warm_up}"
