"""Novelty: target samples that look new get undecided predictions, so that a threshold can tell them apart."""

from __future__ import annotations

import math

from torch import Tensor

from paretoda.objectives.parts.growth import Growth, check_strength
from paretoda.types import Objective, Source, Target


def divergence_from_uniform(logits: Tensor) -> Tensor:
    """KL divergence of every prediction from the uniform one, Σ_k (1/K) log((1/K) / p_k): 0 where it is undecided.

    Args:
        logits: Logits, shape (n, K).

    Returns:
        Shape (n,).

    Examples:
        >>> import torch
        >>> divergence_from_uniform(torch.zeros(1, 3)).abs() < 1e-6
        tensor([True])
    """
    return -logits.log_softmax(1).mean(1) - math.log(logits.shape[1])


class Novelty(Objective):
    """Divergence of the target's predictions from undecided ones, for the samples that look new.

    A sample with weight w (`KnownWeights`, docs/label-sets.md) counts as max(0, 1 - 2w): only what looks more new than
    known. Losses that make all predictions certain would otherwise make those of unknown classes certain as well. At
    full strength the loss takes known samples along.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        strength: Factor of the value and the gradient at full strength.

    Raises:
        ValueError: The strength is not positive.

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(2, 2), torch.zeros(2, 2), torch.arange(2), labels=torch.arange(2))
        >>> logits, weights = torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([0.0, 1.0])
        >>> target = Target(torch.zeros(2, 2), logits, torch.arange(2), weights=weights)
        >>> abs(Novelty(features=2, classes=2)(source, target).item()) < 1e-6  # the certain sample looks known
        True
    """

    label_sets = ("open",)

    def __init__(
        self,
        features: int,  # noqa: ARG002
        classes: int,  # noqa: ARG002
        *,
        strength: float = 0.1,
    ) -> None:
        super().__init__()
        check_strength(strength)
        self.whole, self.growth, self.strength = strength, Growth(start=0.1, full=0.3), strength

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean divergence, weighted by how new the samples look."""
        losses = divergence_from_uniform(target.logits)
        if target.weights is not None:
            losses = losses * (1 - 2 * target.weights.to(losses)).clamp(min=0)
        return self.strength * losses.mean()

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = self.whole * self.growth(progress)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.whole}"
