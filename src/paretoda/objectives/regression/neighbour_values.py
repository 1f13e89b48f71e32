"""The guide of regression: held-out target samples have the values of their nearest source samples."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target


class NeighbourValues(Objective):
    """Mean squared difference of held-out predictions to the mean value of their nearest source samples.

    Neighbours are found by cosine among all training samples of the source, whose values are known. The gradient does
    not reach their mean.

    Args:
        features: Width d of the features.
        classes: Number of outputs (not used).
        k: Number of neighbours.

    Raises:
        ValueError: k is below 1.

    Examples:
        >>> from types import SimpleNamespace
        >>> source = Source(torch.eye(3), torch.zeros(3, 1), torch.arange(3), labels=torch.tensor([0.0, 1.0, 2.0]))
        >>> target = Target(torch.eye(3), torch.tensor([[0.0], [1.0], [5.0]]), torch.arange(3))
        >>> guide = NeighbourValues(features=3, classes=1, k=1)
        >>> guide.refresh(SimpleNamespace(source=source))  # in training a whole Snapshot
        >>> guide(source, target)
        tensor(3.)
    """

    def __init__(self, features: int, classes: int, *, k: int = 10) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        self.features, self.classes, self.k = features, classes, k
        self.bank, self.values = Bank(features), Bank(1)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean squared difference on the held-out samples `target`."""
        with torch.no_grad():
            bank = self.bank()
            similarity = functional.normalize(target.features, dim=1) @ bank.T
            nearest = similarity.topk(min(self.k, len(bank)), dim=1).indices
            wanted = self.values()[nearest, 0].mean(1)
        return functional.mse_loss(target.logits[:, 0], wanted)

    def refresh(self, snapshot: Snapshot) -> None:
        """Store the features and values of the whole training part of the source."""
        self.bank.replace(functional.normalize(snapshot.source.features, dim=1))
        self.values.replace(snapshot.source.labels[:, None])

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"k={self.k}"
