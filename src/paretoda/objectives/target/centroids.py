"""Cross-entropy to labels that the target's own centroids give: the self-supervision of SHOT (Liang et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.guide.pseudo_labels import class_means, nearest_prototype
from paretoda.objectives.parts.growth import Growth, check_strength
from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target


def label_by_centroids(features: Tensor, predictions: Tensor) -> Tensor:
    """Return the class of the nearest centroid of each sample, after the centroids have been found twice.

    The first centroids are means of all features, weighted by the predictions; the second ones are means of the samples
    that are nearest to the first ones. Distances are cosines of the features with a constant 1 behind them. A class
    that no sample is predicted to have gets none.

    Args:
        features: Features, shape (n, d).
        predictions: Probabilities, shape (n, K).

    Returns:
        Shape (n,), int64.

    Examples:
        >>> features = torch.tensor([[1.0, 0.1], [1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
        >>> predictions = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.1, 0.9], [0.1, 0.9]])
        >>> label_by_centroids(features, predictions)  # the second one is predicted to be of the other class
        tensor([0, 0, 1, 1])
    """
    rows = functional.normalize(functional.pad(features, (0, 1), value=1.0), dim=1)
    known = functional.one_hot(predictions.argmax(1), predictions.shape[1]).any(0)
    centroids = predictions.T @ rows / predictions.sum(0).unsqueeze(1)
    labels = nearest_prototype(rows, centroids.masked_fill(~known.unsqueeze(1), torch.nan))
    return nearest_prototype(rows, class_means(rows, labels, predictions.shape[1]))


class Centroids(Objective):
    """The strength times the cross-entropy of target predictions to the class of the nearest centroid of the target.

    The labels are made at every refresh from the whole training part of the target, and are constants between two.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes K (not used).
        strength: Factor β of the value and the gradient at full strength.
        start: Share of the training before which the strength is 0; predictions of an untrained head give no labels.
        full: Share of the training from which the strength is full; it grows linearly from `start`.

    Raises:
        ValueError: An option is out of its range.

    Examples:
        >>> from types import SimpleNamespace
        >>> target = Target(torch.eye(3), 2 * torch.eye(3), torch.arange(3))
        >>> source = Source(torch.zeros(3, 3), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> objective = Centroids(features=3, classes=3, strength=1)
        >>> objective.refresh(SimpleNamespace(target=target))  # in training a whole Snapshot
        >>> round(objective(source, target).item(), 4)
        0.2395
    """

    def __init__(
        self,
        features: int,  # noqa: ARG002
        classes: int,  # noqa: ARG002
        *,
        strength: float = 0.3,
        start: float = 0.2,
        full: float = 0.4,
    ) -> None:
        super().__init__()
        check_strength(strength)
        self.whole, self.growth, self.strength = strength, Growth(start, full), strength
        self.labels = Bank(1)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean cross-entropy of the batch."""
        labels = self.labels()[target.index].squeeze(1).long()
        return self.strength * functional.cross_entropy(target.logits, labels)

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = self.whole * self.growth(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Label the whole training part of the target."""
        target = snapshot.target
        self.labels.replace(label_by_centroids(target.features, target.logits.softmax(1)).unsqueeze(1))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.whole}, start={self.growth.start}, full={self.growth.full}"
