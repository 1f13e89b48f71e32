"""Cross-entropy of the labelled pixels of the source."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import resize_maps
from paretoda.types import IGNORE, Objective, Source, Target


def pixel_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None, focal: float = 0.0) -> Tensor:
    """Mean of (1 - p)^γ · -log p, p the probability of the label, over the labelled pixels; 0 where there are none.

    It is computed at the resolution of the labels. The divisor of the mean is that of γ = 0 for every γ.

    Args:
        logits: Logits, shape (n, K, h, w), which are enlarged here.
        labels: Labels, shape (n, H, W), `IGNORE` where there is none.
        weights: Weights of the classes, shape (K,); the mean is then a weighted one.
        focal: γ: the larger it is, the less do pixels count that are already right; 0 for plain cross-entropy.

    Examples:
        >>> labels = torch.tensor([[[0, IGNORE]]])
        >>> round(pixel_cross_entropy(torch.zeros(1, 2, 1, 2), labels).item(), 4)  # log 2, over one pixel
        0.6931
    """
    height, width = labels.shape[-2:]
    larger = resize_maps(logits, (height, width))
    valid = labels != IGNORE
    if focal:
        total = _focal_losses(larger, labels, weights, focal).where(valid, 0).sum()
    else:
        total = functional.cross_entropy(larger, labels, weights, ignore_index=IGNORE, reduction="sum")
    if weights is None:
        return total / valid.sum().clamp(min=1)
    return total / weights[labels[valid]].sum().clamp(min=torch.finfo(weights.dtype).tiny)


def _focal_losses(logits: Tensor, labels: Tensor, weights: Tensor | None, focal: float) -> Tensor:
    """Loss of every pixel, shape (n, H, W); 1 - p is as accurate as the cross-entropy."""
    losses = functional.cross_entropy(logits, labels, ignore_index=IGNORE, reduction="none")
    # Without the clamp the slope of (1 - p)^γ is infinite at p = 1 for γ < 1, and infinity times 0 is NaN.
    wrong = (-torch.expm1(-losses)).clamp(min=torch.finfo(losses.dtype).tiny)
    own = 1 if weights is None else weights[labels.where(labels != IGNORE, 0)]
    return own * wrong**focal * losses


class PixelCrossEntropy(Objective):
    """Mean of -log p(label) over the labelled pixels of the source; the target is not used.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        auxiliary: Weight of the same loss of every extra output.
        both: The prediction is the sum of two classifiers, and each of them is trained with weight 1 (CLAN).
        weights: Weights of the K classes; None: all are equal.
        focal: γ of the focal loss, which emphasises the pixels that are still wrong; 2 in CLAN's code, 0 for none.

    Raises:
        ValueError: γ is negative, or there are not K weights.

    Examples:
        >>> logits = torch.zeros(1, 2, 4, 4)
        >>> target = Target(torch.zeros(1, 2, 4, 4), logits, torch.arange(1))
        >>> source = Source(target.features, logits, torch.arange(1), labels=torch.zeros(1, 4, 4, dtype=torch.long))
        >>> round(PixelCrossEntropy(features=2, classes=2)(source, target).item(), 4)
        0.6931
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
        """Return the cross-entropy of the source."""
        extra = [self._loss(logits, source) for logits in source.extra_logits]
        if self.both:
            if len(extra) != 2:
                raise ValueError(f"both=True needs a head of two classifiers, and this one has {len(extra)}")
            return extra[0] + extra[1]
        loss = self._loss(source.logits, source)
        return loss + self.auxiliary * sum(extra) if extra else loss

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        flags = f"both={self.both}, weighted={self.weights is not None}, focal={self.focal}"
        return f"auxiliary={self.auxiliary}, {flags}"

    def _loss(self, logits: Tensor, source: Source) -> Tensor:
        weights = None if self.weights is None else self.weights.to(logits)
        return pixel_cross_entropy(logits, source.labels, weights, self.focal)
