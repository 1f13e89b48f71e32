"""FDA's losses on the target (Yang and Soatto, 2020): robust entropy, and cross-entropy to the labels of teachers.

The other half of the method, the exchange of low frequencies, changes the source images and is a translation.
"""

from __future__ import annotations

from torch import Tensor

from paretoda.objectives.segmentation.minent import pixel_entropies
from paretoda.objectives.segmentation.pixel_cross_entropy import pixel_cross_entropy
from paretoda.objectives.segmentation.pseudo_labels import LabelMaps
from paretoda.types import Objective, Source, Target


def robust_entropies(entropies: Tensor, eta: float) -> Tensor:
    """(E² + 1e-8)^η: for η > 1/2 uncertain pixels count more than certain ones.

    Args:
        entropies: Entropies between 0 and 1, any shape.
        eta: Exponent η.

    Examples:
        >>> import torch
        >>> robust_entropies(torch.tensor([0.0, 0.5, 1.0]), eta=2.0)
        tensor([1.0000e-16, 6.2500e-02, 1.0000e+00])
    """
    return (entropies.square() + 1e-8) ** eta


class FdaEntropy(Objective):
    """Mean robust entropy of the target's pixels, at the resolution of the features.

    If `labels` has maps of the target's training images, the mean cross-entropy of the labelled pixels is added.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        strength: Factor of the entropy, of its value and its gradient.
        eta: Exponent η, above 0.

    Raises:
        ValueError: η is not positive.

    Examples:
        >>> import torch
        >>> logits = torch.zeros(1, 3, 4, 4)
        >>> target = Target(torch.zeros(1, 2, 4, 4), logits, torch.arange(1))
        >>> source = Source(target.features, logits, torch.arange(1), labels=torch.zeros(1, 4, 4, dtype=torch.long))
        >>> round(FdaEntropy(features=2, classes=3)(source, target).item(), 4)  # all pixels are uncertain
        0.005
    """

    def __init__(self, features: int, classes: int, *, strength: float = 0.005, eta: float = 2.0) -> None:
        super().__init__()
        self.labels = LabelMaps()
        if eta <= 0:
            raise ValueError(f"eta must be above 0, got {eta}")
        self.features, self.classes, self.strength, self.eta = features, classes, strength, eta

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean, plus the cross-entropy to the labels."""
        loss = self.strength * robust_entropies(pixel_entropies(target.logits), self.eta).mean()
        if not len(self.labels):
            return loss
        labels: Tensor = self.labels(target.index, target.logits)
        return loss + pixel_cross_entropy(target.logits, labels.long())

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}, eta={self.eta}"
