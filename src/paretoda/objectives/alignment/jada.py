"""JADA: a discriminator and two classifiers cannot tell source and target apart (Li et al., 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretoda.objectives.alignment.dann import divergence
from paretoda.objectives.alignment.mcd import disagreement
from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, warm_up
from paretoda.objectives.parts.two_classifiers import TwoClassifiers, both_cross_entropies
from paretoda.types import Objective, Source, Target


class Jada(Objective):
    """Information of a domain discriminator plus the disagreement of two source classifiers on the target.

    Both networks are private and learn at full strength; the encoder lowers the sum.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the discriminator; 1024 in the authors' code.
        width: Width of the two hidden layers of the classifiers.
        dropout: Share of hidden units that dropout leaves out in the classifiers.
        dispute: Weight of the disagreement relative to the discriminator's part.
        warm_up: Whether `advance` raises the strength from 0 to 1; otherwise, and before the first call, it is 1.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = Jada(features=4, classes=3)
        >>> objective(source, target).shape, objective.private_loss(source, target).shape
        (torch.Size([]), torch.Size([]))
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 256,
        width: int = 128,
        dropout: float = 0.5,
        dispute: float = 1.0,
        warm_up: bool = True,
    ) -> None:
        super().__init__()
        self.dispute, self.warm_up, self.strength = dispute, warm_up, 1.0
        self.discriminator = Discriminator(features, hidden)
        self.classifiers = TwoClassifiers(features, classes, (width, width), dropout, norm=False)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times (divergence + disagreement); the disagreement concerns the target alone."""
        rows = torch.cat([source.features, target.features])
        scores = call_frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
        known = divergence(scores[: len(source.features)], scores[len(source.features) :])
        disputed = disagreement(*call_frozen(self.classifiers, target.features, "batch").softmax(2))
        return self.strength * (known + self.dispute * disputed)

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the losses of discriminator and classifiers minus the disagreement, on detached features."""
        n = len(source.features)
        rows = torch.cat([source.features, target.features]).detach()
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        logits = self.classifiers(rows, "learn")
        learned = domain_cross_entropy(scores[:n], scores[n:]) + both_cross_entropies(logits[:, :n], source.labels)
        return learned - self.dispute * disagreement(*logits[:, n:].softmax(2))

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    @property
    def offset(self) -> float:
        """Loss of a discriminator that knows nothing."""
        return math.log(2)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"dispute={self.dispute}, warm_up={self.warm_up}"
