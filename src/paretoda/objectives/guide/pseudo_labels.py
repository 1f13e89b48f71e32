"""Guides by pseudo-labels of held-out samples: source prototypes, target neighbours, and the agreement of both."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank
from paretoda.objectives.parts.weights import weighted_mean
from paretoda.types import Objective, Snapshot, Source, Target

_AT_ONCE = 1024
"""Number of rows whose similarities with the whole bank are held in memory together."""


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


def labels_cross_entropy(target: Target, labels: Tensor) -> Tensor:
    """Mean cross-entropy of target samples to these labels, by the weights of the samples where they have some.

    Args:
        target: Target samples.
        labels: Labels, shape (n,).
    """
    if target.weights is None:
        return functional.cross_entropy(target.logits, labels)
    return weighted_mean(functional.cross_entropy(target.logits, labels, reduction="none"), target.weights)


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

    label_sets = ("closed", "partial", "open")

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
        return labels_cross_entropy(target, self.labels(target.features))

    def refresh(self, snapshot: Snapshot) -> None:
        """Store the class means of the whole source."""
        source = snapshot.source
        self.prototypes.replace(class_means(source.features, source.labels, self.classes))


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

    label_sets = ("closed", "partial", "open")

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
        return labels_cross_entropy(target, self.labels(target.features))

    def refresh(self, snapshot: Snapshot) -> None:
        """Store features and predictions of the whole training part of the target."""
        self.bank.replace(functional.normalize(snapshot.target.features, dim=1))
        self.predictions.replace(snapshot.target.logits.softmax(1))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"k={self.k}"


def agreement_cross_entropy(
    logits: Tensor, one: Tensor, other: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy over the samples whose two labels agree, and their share; 0 where there are none.

    Args:
        logits: Logits, shape (n, K).
        one: Labels, shape (n,).
        other: Other labels, shape (n,).
        weights: How much each sample counts, shape (n,); None: all the same.

    Examples:
        >>> loss, share = agreement_cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), torch.tensor([0, 2]))
        >>> round(loss.item(), 4), share.item()
        (1.0986, 0.5)
    """
    agree = (one == other).to(logits.dtype)
    losses = functional.cross_entropy(logits, one, reduction="none")
    counted = agree if weights is None else agree * weights.to(agree)
    return (counted * losses).sum() / counted.sum().clamp(min=1), agree.mean()


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

    label_sets = ("closed", "partial", "open")

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
        loss, self.share = agreement_cross_entropy(target.logits, one, other, target.weights)
        return loss

    def refresh(self, snapshot: Snapshot) -> None:
        """Store the class means of the source and the features and predictions of the target."""
        self.prototypes.refresh(snapshot)
        self.neighbours.refresh(snapshot)
