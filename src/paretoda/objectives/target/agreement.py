"""Target predictions follow source prototypes and target neighbours where both say the same."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.domains import Objective, Snapshot, Source, Target
from paretoda.objectives.bank import Bank
from paretoda.objectives.guide.neighbours import other_neighbours_prediction
from paretoda.objectives.guide.prototypes import class_means, nearest_prototype
from paretoda.objectives.warm_up import warm_up

UNDECIDED = -1


class Agreement(Objective):
    """Cross-entropy of target predictions to the labels on which prototypes and neighbours agree.

    Labels are made at every refresh, for the whole target; a sample is never its own neighbour. Where the two
    disagree the sample has no say.

    Args:
        features: width d of the features; not used.
        classes: number of classes K.
        k: number of neighbours.
        strength: of value and gradient when the training ends; it grows as an alignment's does.
    """

    def __init__(self, features: int, classes: int, *, k: int = 10, strength: float = 0.5) -> None:  # noqa: ARG002
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        self.classes, self.k, self.full, self.strength = classes, k, strength, strength
        self.labels = Bank(1)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Strength times the mean cross-entropy of the batch's agreed samples; 0 where there are none."""
        labels = self.labels().squeeze(1).long()[target.index]
        agreed = (labels != UNDECIDED).sum().clamp(min=1)
        total = functional.cross_entropy(target.logits, labels, ignore_index=UNDECIDED, reduction="sum")
        loss: Tensor = self.strength * total / agreed
        return loss

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = self.full * warm_up(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Label the whole training part of the target."""
        source, target = snapshot.source, snapshot.target
        one = nearest_prototype(target.features, class_means(source.features, source.labels, self.classes))
        other = other_neighbours_prediction(target.features, target.logits.softmax(1), self.k).argmax(1)
        self.labels.replace(torch.where(one == other, one, UNDECIDED).unsqueeze(1).float())

    def extra_repr(self) -> str:
        """Settings."""
        return f"k={self.k}, strength={self.full}"
