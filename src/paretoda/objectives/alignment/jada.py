"""JADA: domains that a discriminator cannot tell and two classifiers cannot dispute (Li et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.objectives.alignment.dann import divergence
from paretoda.objectives.alignment.mcd import disagreement
from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, warm_up
from paretoda.objectives.parts.two_classifiers import TwoClassifiers, both_cross_entropies
from paretoda.types import Objective, Source, Target


class Jada(Objective):
    """What a discriminator knows about the domain, and how much two classifiers of the source disagree on the target.

    Both networks are private and learn at full strength; the encoder lowers the sum.

    Args:
        features: width d of the features.
        classes: number of classes K.
        hidden: width of the discriminator; 1024 in the authors' code.
        width: of the classifiers' two hidden layers.
        dropout: in the classifiers.
        dispute: weight of the disagreement beside the discriminator's part.
        warm_up: whether `advance` raises the strength from 0 to 1; without it, and before the first call, it is 1.
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
        """Strength times (divergence + disagreement); the second is a matter of the target alone."""
        rows = torch.cat([source.features, target.features])
        scores = frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
        known = divergence(scores[: len(source.features)], scores[len(source.features) :])
        disputed = disagreement(*frozen(self.classifiers, target.features, "batch").softmax(2))
        return self.strength * (known + self.dispute * disputed)

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """The discriminator's cross-entropy, the classifiers' two, minus their disagreement; on detached features."""
        n = len(source.features)
        rows = torch.cat([source.features, target.features]).detach()
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        logits = self.classifiers(rows, "learn")
        learned = domain_cross_entropy(scores[:n], scores[n:]) + both_cross_entropies(logits[:, :n], source.labels)
        return learned - self.dispute * disagreement(*logits[:, n:].softmax(2))

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    def extra_repr(self) -> str:
        """Settings."""
        return f"dispute={self.dispute}, warm_up={self.warm_up}"
