"""Held-out predictions follow those of the nearest training samples of the target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target

_AT_ONCE = 1024
"""Number of rows whose similarities with the whole bank are held in memory together."""


def neighbour_prediction(features: Tensor, bank: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Mean prediction of the k samples with the largest cosine.

    Args:
        features: Features, shape (n, d).
        bank: Features to search, of unit length, shape (N, d).
        predictions: Predictions of the bank, shape (N, K).
        k: Number of neighbours; all N where there are fewer.

    Returns:
        Shape (n, K).

    Examples:
        >>> neighbour_prediction(torch.tensor([[1.0, 0.1]]), torch.eye(2), torch.eye(2), k=1)
        tensor([[1., 0.]])
    """
    parts = torch.split(functional.normalize(features, dim=1), _AT_ONCE)
    nearest = [(part @ bank.T).topk(min(k, len(bank)), dim=1).indices for part in parts]
    return predictions[torch.cat(nearest)].mean(1)


class NeighbourGuide(Objective):
    """Cross-entropy of held-out predictions to the class that their neighbours in the target's training part predict.

    The neighbours are those of the last refresh, the held-out features those of this step; the labels are constants.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        target_loss: Target loss of the run (not used).
        k: Number of neighbours.

    Raises:
        ValueError: k is below 1.

    Examples:
        >>> from types import SimpleNamespace
        >>> source = Source(torch.eye(3), torch.eye(3), torch.arange(3), labels=torch.arange(3))
        >>> target = Target(torch.eye(3), torch.eye(3), torch.arange(3))
        >>> guide = NeighbourGuide(features=3, classes=3, k=1)
        >>> guide.refresh(SimpleNamespace(target=target))  # in training a whole Snapshot
        >>> guide.labels(torch.eye(3))
        tensor([0, 1, 2])
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
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        self.k = k
        self.bank, self.predictions = Bank(features), Bank(classes)

    def labels(self, features: Tensor) -> Tensor:
        """Pseudo-labels, shape (n,), of features (n, d)."""
        with torch.no_grad():
            return neighbour_prediction(features, self.bank(), self.predictions(), self.k).argmax(1)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy on the held-out samples `target`."""
        return functional.cross_entropy(target.logits, self.labels(target.features))

    def refresh(self, snapshot: Snapshot) -> None:
        """Store features and predictions of the whole training part of the target."""
        self.bank.replace(functional.normalize(snapshot.target.features, dim=1))
        self.predictions.replace(snapshot.target.logits.softmax(1))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"k={self.k}"
