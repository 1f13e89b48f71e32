"""Entropy: every prediction of the target becomes certain (Grandvalet and Bengio, 2004)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.types import Objective, Source, Target


def entropies(log_probabilities: Tensor) -> Tensor:
    """-Σ_k p_k log p_k of every row, between 0 and log K.

    Args:
        log_probabilities: log p, shape (n, K); probabilities may underflow to 0, their logarithms must be finite.

    Returns:
        Shape (n,).
    """
    return -(log_probabilities.exp() * log_probabilities).sum(1)


class Entropy(Objective):
    """Mean entropy of the target's predictions. Alone it is content with one class for all.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features, self.classes = features, classes

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The mean entropy."""
        return entropies(functional.log_softmax(target.logits, 1)).mean()
