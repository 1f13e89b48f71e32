"""Held-out predictions follow source prototypes and target neighbours where the two agree."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.guide.neighbours import NeighbourGuide
from paretoda.objectives.guide.prototypes import PrototypeGuide
from paretoda.types import Objective, Snapshot, Source, Target


def agreement_cross_entropy(logits: Tensor, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy over the samples whose two labels agree, and their share; 0 where there are none.

    Args:
        logits: Logits, shape (n, K).
        one: Labels, shape (n,).
        other: Other labels, shape (n,).

    Examples:
        >>> loss, share = agreement_cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), torch.tensor([0, 2]))
        >>> round(loss.item(), 4), share.item()
        (1.0986, 0.5)
    """
    agree = (one == other).to(logits.dtype)
    losses = functional.cross_entropy(logits, one, reduction="none")
    return (agree * losses).sum() / agree.sum().clamp(min=1), agree.mean()


class AgreementGuide(Objective):
    """Cross-entropy of held-out predictions to the labels on which prototypes and neighbours agree.

    `share` is the share of the last held-out samples on which they agreed; the other samples do not count.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        target_loss: Target loss of the run (not used).
        k: Number of neighbours.

    Examples:
        >>> from types import SimpleNamespace
        >>> source = Source(torch.eye(3), torch.eye(3), torch.arange(3), labels=torch.arange(3))
        >>> target = Target(torch.eye(3), torch.eye(3), torch.arange(3))
        >>> guide = AgreementGuide(features=3, classes=3, k=1)
        >>> guide.refresh(SimpleNamespace(source=source, target=target))  # in training a whole Snapshot
        >>> bool(guide(source, target) > 0), guide.share.item()
        (True, 1.0)
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
        """Return the cross-entropy on the held-out samples `target` whose labels agree."""
        one, other = self.prototypes.labels(target.features), self.neighbours.labels(target.features)
        loss, self.share = agreement_cross_entropy(target.logits, one, other)
        return loss

    def refresh(self, snapshot: Snapshot) -> None:
        """Store the class means of the source and the features and predictions of the target."""
        self.prototypes.refresh(snapshot)
        self.neighbours.refresh(snapshot)
