"""DANN: features from which a discriminator cannot tell the domains (Ganin et al., 2016)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, warm_up
from paretoda.types import Objective, Source, Target


def divergence(source: Tensor, target: Tensor) -> Tensor:
    """What the discriminator knows, log 2 minus its cross-entropy: at its best, the Jensen-Shannon divergence.

    Args:
        source: scores of source rows, shape (n,).
        target: scores of target rows, shape (m,).
    """
    return math.log(2) - domain_cross_entropy(source, target)


class Dann(Objective):
    """What a discriminator of the features knows about their domain.

    The strength scales what the encoder lowers, value and gradient; the discriminator learns at full strength.

    Args:
        features: width d of the features.
        classes: number of classes; not used.
        hidden: width of the discriminator; the paper has 1024, and on features 256 does as well at half the cost.
        warm_up: whether `advance` raises the strength from 0 to 1; without it, and before the first call, it is 1.
    """

    def __init__(self, features: int, classes: int, *, hidden: int = 256, warm_up: bool = True) -> None:
        super().__init__()
        self.features, self.classes, self.warm_up = features, classes, warm_up
        self.strength = 1.0
        self.discriminator = Discriminator(features, hidden)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the divergence."""
        rows = torch.cat([source.features, target.features])
        scores = frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
        return self.strength * divergence(scores[: len(source.features)], scores[len(source.features) :])

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """The discriminator's cross-entropy, on detached features."""
        rows = torch.cat([source.features, target.features]).detach()
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        return domain_cross_entropy(scores[: len(source.features)], scores[len(source.features) :])

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    def extra_repr(self) -> str:
        """Settings."""
        return f"warm_up={self.warm_up}"
