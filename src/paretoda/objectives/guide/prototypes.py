"""Held-out predictions follow the nearest class mean of the source."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target


def class_means(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The mean feature of every class.

    Args:
        features: shape (n, d).
        labels: shape (n,).
        classes: K.

    Returns:
        Shape (K, d); not-a-number for a class without samples, which then is nobody's nearest.
    """
    members = functional.one_hot(labels, classes).to(features.dtype)
    return members.T @ features / members.sum(0).unsqueeze(1)


def nearest_prototype(features: Tensor, prototypes: Tensor) -> Tensor:
    """The class whose prototype has the largest cosine with the feature.

    Args:
        features: shape (n, d).
        prototypes: shape (K, d), not-a-number where there is none.

    Returns:
        Shape (n,), int64.
    """
    similarity = functional.normalize(features, dim=1) @ functional.normalize(prototypes, dim=1).T
    return similarity.masked_fill(prototypes.isnan().any(1), -math.inf).argmax(1)


class PrototypeGuide(Objective):
    """Cross-entropy of held-out predictions to the class of the nearest source prototype.

    Prototypes are from the last refresh, the held-out features of this step; the labels are constants.

    Args:
        features: width d of the features.
        classes: number of classes K.
        target_loss: not used.
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
        """The cross-entropy on the held-out samples `target`."""
        return functional.cross_entropy(target.logits, self.labels(target.features))

    def refresh(self, snapshot: Snapshot) -> None:
        """Take the class means of the whole source."""
        source = snapshot.source
        self.prototypes.replace(class_means(source.features, source.labels, self.classes))
