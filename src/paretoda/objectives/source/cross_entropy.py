"""Cross-entropy on the labelled source: the only loss of a model without adaptation."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.weights import weighted_mean
from paretoda.types import Objective, Source, Target


class CrossEntropy(Objective):
    """Mean of -log p(label) on the source, weighted where the samples have weights; the target is not used.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        smoothing: Share of every label that is spread evenly over the K classes; the loss then has a minimum above 0.

    Raises:
        ValueError: The smoothing does not lie in 0..1.

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(4, 2), torch.zeros(4, 3), torch.arange(4), labels=torch.tensor([0, 1, 2, 0]))
        >>> target = Target(torch.zeros(4, 2), torch.zeros(4, 3), torch.arange(4))
        >>> round(CrossEntropy(features=2, classes=3)(source, target).item(), 4)  # log 3
        1.0986
    """

    label_sets = ("closed", "partial", "open")

    def __init__(self, features: int, classes: int, *, smoothing: float = 0.0) -> None:
        super().__init__()
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in 0..1, got {smoothing}")
        self.features, self.classes, self.smoothing = features, classes, smoothing

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy of the source."""
        if source.weights is None:
            return functional.cross_entropy(source.logits, source.labels, label_smoothing=self.smoothing)
        losses = functional.cross_entropy(
            source.logits, source.labels, label_smoothing=self.smoothing, reduction="none"
        )
        return weighted_mean(losses, source.weights)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"smoothing={self.smoothing}"
