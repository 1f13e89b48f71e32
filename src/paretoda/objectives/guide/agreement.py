"""Held-out predictions follow source prototypes and target neighbours where both say the same."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.guide.neighbours import NeighbourGuide
from paretoda.objectives.guide.prototypes import PrototypeGuide
from paretoda.types import Objective, Snapshot, Source, Target


def agreed_cross_entropy(logits: Tensor, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy over the samples whose two labels agree, and their share; 0 where none do.

    Args:
        logits: shape (n, K).
        one: labels, shape (n,).
        other: labels, shape (n,).
    """
    agreed = (one == other).to(logits.dtype)
    losses = functional.cross_entropy(logits, one, reduction="none")
    return (agreed * losses).sum() / agreed.sum().clamp(min=1), agreed.mean()


class AgreementGuide(Objective):
    """Cross-entropy of held-out predictions to the labels on which prototypes and neighbours agree.

    `share` is the share of the last held-out samples on which they did: the others have no say.

    Args:
        features: width d of the features.
        classes: number of classes K.
        target_loss: not used.
        k: number of neighbours.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        target_loss: Objective | None = None,  # noqa: ARG002
        *,
        k: int = 10,
    ) -> None:
        super().__init__()
        self.prototypes = PrototypeGuide(features, classes)
        self.neighbours = NeighbourGuide(features, classes, k=k)
        self.share = torch.tensor(float("nan"))

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The cross-entropy on the agreed ones of the held-out samples `target`."""
        one, other = self.prototypes.labels(target.features), self.neighbours.labels(target.features)
        loss, self.share = agreed_cross_entropy(target.logits, one, other)
        return loss

    def refresh(self, snapshot: Snapshot) -> None:
        """Take the source's class means and the target's features and predictions."""
        self.prototypes.refresh(snapshot)
        self.neighbours.refresh(snapshot)
