"""Entropy: a model that is sure of its predictions on the target may be right (Morerio et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.types import Snapshot


def mean_entropy(logits: Tensor) -> float:
    """The mean over samples of -Σ p log p: 0 for one-hot, log K for uniform predictions.

    Args:
        logits: Shape (n, K).
    """
    log_p = logits.double().log_softmax(dim=1)
    return float(-(log_p.exp() * log_p).sum(dim=1).mean())


@dataclass(frozen=True)
class Entropy:
    """Minus the mean entropy of the target's predictions. Blind to collapse: one class for all gets the best score."""

    def __call__(self, snapshot: Snapshot) -> float:
        """In -log K..0."""
        return -mean_entropy(snapshot.target.logits)
