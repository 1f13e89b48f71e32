"""Entropy minimisation: every prediction on the target becomes certain (Grandvalet and Bengio, 2004)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.types import Objective, Source, Target


def entropies(log_probabilities: Tensor) -> Tensor:
    """-Σ_k p_k log p_k of every row, between 0 and log K.

    Args:
        log_probabilities: log p, shape (n, K); probabilities may underflow to 0, but their logarithms must be finite.

    Returns:
        Shape (n,).

    Examples:
        >>> import torch
        >>> entropies(torch.zeros(1, 2).log_softmax(1))  # log 2
        tensor([0.6931])
    """
    return -(log_probabilities.exp() * log_probabilities).sum(1)


class Entropy(Objective):
    """Mean entropy of the target's predictions. It does not prevent the prediction of one class for all samples.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(2, 2), torch.zeros(2, 2), torch.arange(2), labels=torch.arange(2))
        >>> target = Target(torch.zeros(3, 2), torch.zeros(3, 2), torch.arange(3))
        >>> round(Entropy(features=2, classes=2)(source, target).item(), 4)
        0.6931
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features, self.classes = features, classes

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean entropy."""
        return entropies(functional.log_softmax(target.logits, 1)).mean()
