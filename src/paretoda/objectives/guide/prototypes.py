"""Held-out predictions follow the nearest class mean of the source."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target


def class_means(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Mean feature of every class.

    Args:
        features: Features, shape (n, d).
        labels: Labels, shape (n,).
        classes: Number of classes K.

    Returns:
        Shape (K, d); NaN for a class without samples, which then is never the nearest.

    Examples:
        >>> class_means(torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([0, 0, 1]), classes=2)
        tensor([[1.],
                [5.]])
    """
    members = functional.one_hot(labels, classes).to(features.dtype)
    return members.T @ features / members.sum(0).unsqueeze(1)


def nearest_prototype(features: Tensor, prototypes: Tensor) -> Tensor:
    """Class whose prototype has the largest cosine with the feature.

    Args:
        features: Features, shape (n, d).
        prototypes: Prototypes, shape (K, d), NaN where there is none.

    Returns:
        Shape (n,), int64.
    """
    similarity = functional.normalize(features, dim=1) @ functional.normalize(prototypes, dim=1).T
    return similarity.masked_fill(prototypes.isnan().any(1), -math.inf).argmax(1)


class PrototypeGuide(Objective):
    """Cross-entropy of held-out predictions to the class of the nearest source prototype.

    The prototypes are those of the last refresh, the held-out features those of this step; the labels are constants.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        target_loss: Target loss of the run (not used).

    Examples:
        >>> from types import SimpleNamespace
        >>> source = Source(torch.eye(3), torch.eye(3), torch.arange(3), labels=torch.arange(3))
        >>> guide = PrototypeGuide(features=3, classes=3)
        >>> guide.refresh(SimpleNamespace(source=source))  # in training a whole Snapshot
        >>> guide.labels(torch.eye(3).flip(0))
        tensor([2, 1, 0])
    """

    def __init__(self, features: int, classes: int, target_loss: Objective | None = None) -> None:  # noqa: ARG002
        super().__init__()
        self.classes = classes
        self.prototypes = Bank(features)

    def labels(self, features: Tensor) -> Tensor:
        """Pseudo-labels, shape (n,), of features (n, d)."""
        with torch.no_grad():
            return nearest_prototype(features, self.prototypes())

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy on the held-out samples `target`."""
        return functional.cross_entropy(target.logits, self.labels(target.features))

    def refresh(self, snapshot: Snapshot) -> None:
        """Store the class means of the whole source."""
        source = snapshot.source
        self.prototypes.replace(class_means(source.features, source.labels, self.classes))
