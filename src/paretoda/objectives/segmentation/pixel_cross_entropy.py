"""Cross-entropy of the labelled pixels of the source."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.domains import IGNORE, Objective, Source, Target
from paretoda.maps import enlarged


def pixel_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of -log p(label) over the labelled pixels, at the labels' resolution; 0 where there are none.

    Args:
        logits: shape (n, K, h, w), enlarged here.
        labels: shape (n, H, W), `IGNORE` where there is none.
        weights: of the classes, shape (K,); the mean is then a weighted one.
    """
    height, width = labels.shape[-2:]
    larger = enlarged(logits, (height, width))
    total = functional.cross_entropy(larger, labels, weights, ignore_index=IGNORE, reduction="sum")
    valid = labels != IGNORE
    if weights is None:
        return total / valid.sum().clamp(min=1)
    return total / weights[labels[valid]].sum().clamp(min=torch.finfo(weights.dtype).tiny)


class PixelCrossEntropy(Objective):
    """Mean of -log p(label) over the labelled pixels of the source; the target is not looked at.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        auxiliary: weight of the same loss of every further output.
        both: the prediction is the sum of two classifiers, and each of them is taught, with weight 1 (CLAN).
        weights: of the classes, K of them; None weighs all alike.
    """

    weights: Tensor | None

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        auxiliary: float = 0.1,
        both: bool = False,
        weights: Sequence[float] | Tensor | None = None,
    ) -> None:
        super().__init__()
        if weights is not None and len(weights) != classes:
            raise ValueError(f"there are {classes} classes and {len(weights)} weights: they must be as many")
        self.features, self.classes = features, classes
        self.auxiliary, self.both = auxiliary, both
        self.register_buffer("weights", None if weights is None else torch.as_tensor(weights, dtype=torch.float32))

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The source's cross-entropy."""
        further = [self._loss(logits, source) for logits in source.further]
        if self.both:
            if len(further) != 2:
                raise ValueError(f"both=True needs a head of two classifiers, and this one has {len(further)}")
            return further[0] + further[1]
        loss = self._loss(source.logits, source)
        return loss + self.auxiliary * sum(further) if further else loss

    def extra_repr(self) -> str:
        """Settings."""
        return f"auxiliary={self.auxiliary}, both={self.both}, weighted={self.weights is not None}"

    def _loss(self, logits: Tensor, source: Source) -> Tensor:
        weights = None if self.weights is None else self.weights.to(logits)
        return pixel_cross_entropy(logits, source.labels, weights)
