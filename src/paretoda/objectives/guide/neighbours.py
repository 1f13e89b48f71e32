"""Held-out predictions follow those of the nearest training samples of the target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target

_AT_ONCE = 1024
"""Rows whose similarities with the whole bank are held in memory together."""


def neighbour_prediction(features: Tensor, bank: Tensor, predictions: Tensor, k: int) -> Tensor:
    """The mean prediction of the k samples with the largest cosine.

    Args:
        features: shape (n, d).
        bank: features to search, of unit length, shape (N, d).
        predictions: of the bank, shape (N, K).
        k: number of neighbours; all N where there are fewer.

    Returns:
        Shape (n, K).
    """
    parts = torch.split(functional.normalize(features, dim=1), _AT_ONCE)
    nearest = [(part @ bank.T).topk(min(k, len(bank)), dim=1).indices for part in parts]
    return predictions[torch.cat(nearest)].mean(1)


class NeighbourGuide(Objective):
    """Cross-entropy of held-out predictions to the class that their neighbours in the target's training part predict.

    Neighbours are from the last refresh, the held-out features of this step; the labels are constants.

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
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        self.k = k
        self.bank, self.predictions = Bank(features), Bank(classes)

    def labels(self, features: Tensor) -> Tensor:
        """Pseudo-labels, shape (n,), of features (n, d)."""
        with torch.no_grad():
            return neighbour_prediction(features, self.bank(), self.predictions(), self.k).argmax(1)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The cross-entropy on the held-out samples `target`."""
        return functional.cross_entropy(target.logits, self.labels(target.features))

    def refresh(self, snapshot: Snapshot) -> None:
        """Take features and predictions of the whole training part of the target."""
        self.bank.replace(functional.normalize(snapshot.target.features, dim=1))
        self.predictions.replace(snapshot.target.logits.softmax(1))

    def extra_repr(self) -> str:
        """Settings."""
        return f"k={self.k}"
