"""Cross-entropy on the labelled source: what a model without adaptation lowers, and nothing else."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.types import Objective, Source, Target


class CrossEntropy(Objective):
    """Mean of -log p(label) on the source; the target is not looked at.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        smoothing: share of every label that is spread evenly over the K classes; the loss then has a minimum above 0.
    """

    def __init__(self, features: int, classes: int, *, smoothing: float = 0.0) -> None:
        super().__init__()
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in 0..1, got {smoothing}")
        self.features, self.classes, self.smoothing = features, classes, smoothing

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The source's cross-entropy."""
        return functional.cross_entropy(source.logits, source.labels, label_smoothing=self.smoothing)

    def extra_repr(self) -> str:
        """Settings."""
        return f"smoothing={self.smoothing}"
