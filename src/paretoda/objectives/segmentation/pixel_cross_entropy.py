"""Cross-entropy of the labelled pixels of the source."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import enlarged
from paretoda.types import IGNORE, Objective, Source, Target


def pixel_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None, focal: float = 0.0) -> Tensor:
    """Mean of (1 - p)^γ · -log p, p that of the label, over the labelled pixels; 0 where there are none.

    At the labels' resolution. The mean's divisor is that of γ = 0 for every γ.

    Args:
        logits: shape (n, K, h, w), enlarged here.
        labels: shape (n, H, W), `IGNORE` where there is none.
        weights: of the classes, shape (K,); the mean is then a weighted one.
        focal: γ: the larger, the less do pixels count that are right already; 0 for plain cross-entropy.
    """
    height, width = labels.shape[-2:]
    larger = enlarged(logits, (height, width))
    valid = labels != IGNORE
    if focal:
        total = _focal_losses(larger, labels, weights, focal).where(valid, 0).sum()
    else:
        total = functional.cross_entropy(larger, labels, weights, ignore_index=IGNORE, reduction="sum")
    if weights is None:
        return total / valid.sum().clamp(min=1)
    return total / weights[labels[valid]].sum().clamp(min=torch.finfo(weights.dtype).tiny)


def _focal_losses(logits: Tensor, labels: Tensor, weights: Tensor | None, focal: float) -> Tensor:
    """Of every pixel, shape (n, H, W); 1 - p is rounded no more than the cross-entropy."""
    losses = functional.cross_entropy(logits, labels, ignore_index=IGNORE, reduction="none")
    # The clamp: where p is 1, the slope of (1 - p)^γ is infinite for γ < 1, and infinity times 0 is not a number.
    wrong = (-torch.expm1(-losses)).clamp(min=torch.finfo(losses.dtype).tiny)
    own = 1 if weights is None else weights[labels.where(labels != IGNORE, 0)]
    return own * wrong**focal * losses


class PixelCrossEntropy(Objective):
    """Mean of -log p(label) over the labelled pixels of the source; the target is not looked at.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        auxiliary: weight of the same loss of every further output.
        both: the prediction is the sum of two classifiers, and each of them is taught, with weight 1 (CLAN).
        weights: of the classes, K of them; None weighs all alike.
        focal: γ of the focal loss, which turns to the pixels that are still wrong; 2 in CLAN's code, 0 for none.
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
        focal: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= focal < math.inf:
            raise ValueError(f"focal must be 0 or more, got {focal}")
        if weights is not None and len(weights) != classes:
            raise ValueError(f"there are {classes} classes and {len(weights)} weights: they must be as many")
        self.features, self.classes = features, classes
        self.auxiliary, self.both, self.focal = auxiliary, both, focal
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
        flags = f"both={self.both}, weighted={self.weights is not None}, focal={self.focal}"
        return f"auxiliary={self.auxiliary}, {flags}"

    def _loss(self, logits: Tensor, source: Source) -> Tensor:
        weights = None if self.weights is None else self.weights.to(logits)
        return pixel_cross_entropy(logits, source.labels, weights, self.focal)
