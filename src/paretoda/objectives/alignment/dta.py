"""DTA: predictions that do not change when the features they lean on most are dropped (Lee et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.discriminator import ramp
from paretoda.types import Objective, Source, Target


def divergences(logits: Tensor, others: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of every row's softmax(logits) to softmax(others).

    Args:
        logits: shape (n, K).
        others: shape (n, K).

    Returns:
        Shape (n,), not negative.
    """
    log_p, log_q = functional.log_softmax(logits, 1), functional.log_softmax(others, 1)
    return (log_p.exp() * (log_p - log_q)).sum(1)


def adversarial_mask(slopes: Tensor, count: int) -> Tensor:
    """0 for those of a row's units whose loss hurts most, and for the others what brings the row's mean to 1.

    Args:
        slopes: of what is to rise, for the mask, where all is kept; shape (n, d). Dropping helps where it is negative.
        count: at most so many units of a row are dropped; fewer than d.

    Returns:
        Constants, shape (n, d).
    """
    harm = (-slopes.detach()).clamp(min=0)
    kept = harm <= harm.topk(count + 1, dim=1).values[:, -1:]
    return kept * (slopes.shape[1] / kept.sum(1, keepdim=True))


class Dta(Objective):
    """How much the target's predictions change when the head loses the features that matter most to it.

    Where nothing is dropped yet the divergence has no slope, so the slopes are taken behind a little random dropout;
    it stands for the second random pass through the network of the paper. In evaluation nothing is dropped.

    Args:
        features: width d of the features.
        classes: number of classes K; the divergence is a mean over classes as well, as in the authors' code.
        share: δ, of the features that are dropped when the training ends; one at least.
        noise: share of the features that are dropped at random where the slopes are taken.
        strength: of value and gradient.
    """

    def __init__(
        self, features: int, classes: int, *, share: float = 0.1, noise: float = 0.1, strength: float = 2.0
    ) -> None:
        super().__init__()
        if not 0 < share < 1 or not 0 < noise < 1:
            raise ValueError(f"share and noise must lie between 0 and 1, got {share} and {noise}")
        if features < 2:
            raise ValueError("DTA drops a part of the features: there must be 2 or more")
        self.features, self.classes, self.share, self.strength = features, classes, share, strength
        self.grown = 1.0
        self.dropout = nn.Dropout(noise)

    @property
    def count(self) -> int:
        """How many features of a sample may be dropped now: none at the very start, then at least one."""
        return min(max(int(self.share * self.grown * self.features), 1), self.features - 1) if self.grown > 0 else 0

    def mask(self, target: Target) -> Tensor:
        """What the features are multiplied by, shape (n, d); constants."""
        with torch.enable_grad():
            whole = torch.ones_like(target.features, requires_grad=True)
            noisy = target.logits_of(whole * self.dropout(target.features.detach()))
            slopes = torch.autograd.grad(divergences(target.logits.detach(), noisy).sum(), whole)[0]
        return adversarial_mask(slopes, self.count)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Strength times the mean divergence of the predictions to those of the masked features, over K."""
        if self.count == 0 or not self.dropout.training:
            return target.features.new_zeros(())
        masked = target.logits_of(self.mask(target) * target.features)
        return self.strength * divergences(target.logits, masked).mean() / self.classes

    def advance(self, progress: float) -> None:
        """Let the share of dropped features grow in proportion to the training that is done."""
        self.grown = ramp(progress)

    def extra_repr(self) -> str:
        """Settings."""
        return f"share={self.share}, noise={self.dropout.p}, strength={self.strength}"
