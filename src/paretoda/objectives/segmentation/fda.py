"""FDA's losses on the target (Yang and Soatto, 2020): pixels in doubt become certain, labels of teachers are learned.

The other half of the method, the exchange of low frequencies, changes the source's images and is a translation.
"""

from __future__ import annotations

from torch import Tensor

from paretoda.objectives.segmentation.minent import pixel_entropies
from paretoda.objectives.segmentation.pixel_cross_entropy import pixel_cross_entropy
from paretoda.objectives.segmentation.pseudo_labels import LabelMaps
from paretoda.types import Objective, Source, Target


def robust(entropies: Tensor, eta: float) -> Tensor:
    """(E² + 1e-8)^η: for η > 1/2 pixels in doubt count more than certain ones.

    Args:
        entropies: between 0 and 1, any shape.
        eta: η.
    """
    return (entropies.square() + 1e-8) ** eta


class FdaEntropy(Objective):
    """Mean robust entropy of the target's pixels, at the resolution of the features.

    Where `labels` has maps of the target's training images, the mean cross-entropy of the labelled pixels is added.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        strength: of the entropy, value and gradient.
        eta: η, above 0.
    """

    def __init__(self, features: int, classes: int, *, strength: float = 0.005, eta: float = 2.0) -> None:
        super().__init__()
        self.labels = LabelMaps()
        if eta <= 0:
            raise ValueError(f"eta must be above 0, got {eta}")
        self.features, self.classes, self.strength, self.eta = features, classes, strength, eta

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Strength times the mean, and the cross-entropy to the labels."""
        loss = self.strength * robust(pixel_entropies(target.logits), self.eta).mean()
        if not len(self.labels):
            return loss
        labels: Tensor = self.labels(target.index, target.logits)
        return loss + pixel_cross_entropy(target.logits, labels.long())

    def extra_repr(self) -> str:
        """Settings."""
        return f"strength={self.strength}, eta={self.eta}"
