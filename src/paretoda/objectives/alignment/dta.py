"""DTA: predictions do not change when the features that they depend on most are dropped (Lee et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.discriminator import ramp
from paretoda.types import Objective, Source, Target


def divergences(logits: Tensor, others: Tensor) -> Tensor:
    """Kullback-Leibler divergence of softmax(logits) from softmax(others) for every row.

    Args:
        logits: Logits, shape (n, K).
        others: Other logits, shape (n, K).

    Returns:
        Shape (n,), non-negative.

    Examples:
        >>> divergences(torch.zeros(2, 3), torch.ones(2, 3)).abs().max() < 1e-6
        tensor(True)
    """
    log_p, log_q = functional.log_softmax(logits, 1), functional.log_softmax(others, 1)
    return (log_p.exp() * (log_p - log_q)).sum(1)


def adversarial_mask(slopes: Tensor, count: int) -> Tensor:
    """Mask that drops the units whose loss hurts most: 0 for these, and for the others the value that makes the mean 1.

    Args:
        slopes: Slopes of the quantity to raise with respect to the mask, where all units are kept, shape (n, d).
            Dropping a unit helps where its slope is negative.
        count: Largest number of units of a row that are dropped; smaller than d.

    Returns:
        Constants, shape (n, d).

    Examples:
        >>> adversarial_mask(torch.tensor([[-3.0, 1.0, 2.0, -0.5]]), count=1)
        tensor([[0.0000, 1.3333, 1.3333, 1.3333]])
    """
    harm = (-slopes.detach()).clamp(min=0)
    kept = harm <= harm.topk(count + 1, dim=1).values[:, -1:]
    return kept * (slopes.shape[1] / kept.sum(1, keepdim=True))


class Dta(Objective):
    """Change of the target's predictions when the head loses the features that matter most to it.

    Where nothing is dropped the divergence has no slope, so the slopes are taken behind a little random dropout, which
    replaces the second random pass through the network of the paper. In evaluation mode nothing is dropped.

    Args:
        features: Width d of the features.
        classes: Number of classes K; the divergence is a mean over classes as well, as in the authors' code.
        share: Share δ of the features that is dropped at the end of training; at least one feature.
        noise: Share of the features that is dropped at random where the slopes are taken.
        strength: Factor of the value and the gradient.

    Raises:
        ValueError: A share does not lie between 0 and 1, or there are fewer than 2 features.

    Examples:
        >>> head = nn.Linear(4, 3)
        >>> features = torch.randn(8, 4)
        >>> source = Source(features, head(features), torch.arange(8), head=head, labels=torch.arange(8) % 3)
        >>> target = Target(features, head(features), torch.arange(8), head=head)
        >>> bool(Dta(features=4, classes=3)(source, target) >= 0)
        True
    """

    reads_all_sources = True

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
        """Number of features of a sample that may be dropped now: none at the very start, then at least one."""
        return min(max(int(self.share * self.grown * self.features), 1), self.features - 1) if self.grown > 0 else 0

    def mask(self, target: Target) -> Tensor:
        """Mask of the features, shape (n, d); constants."""
        with torch.enable_grad():
            whole = torch.ones_like(target.features, requires_grad=True)
            noisy = target.logits_of(whole * self.dropout(target.features.detach()))
            slopes = torch.autograd.grad(divergences(target.logits.detach(), noisy).sum(), whole)[0]
        return adversarial_mask(slopes, self.count)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean divergence of the predictions from the masked ones, over K."""
        if self.count == 0 or not self.dropout.training:
            return 0.0 * target.logits.sum()  # a zero that can be differentiated, as some strategies do
        masked = target.logits_of(self.mask(target) * target.features)
        return self.strength * divergences(target.logits, masked).mean() / self.classes

    def advance(self, progress: float) -> None:
        """Set the share of dropped features in proportion to the progress of the training."""
        self.grown = ramp(progress)

    @property
    def offset(self) -> float:
        """What is missing of the strength, over K like the loss, while the share of dropped features grows."""
        return self.strength / self.classes * (1 - self.grown)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"share={self.share}, noise={self.dropout.p}, strength={self.strength}"
