"""Entropy: a model that is certain of its predictions on the target may be right (Morerio et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.types import Snapshot


def mean_entropy(logits: Tensor) -> float:
    """Mean over samples of -Σ p log p: 0 for one-hot, log K for uniform predictions.

    Args:
        logits: Logits, shape (n, K).
    """
    log_p = logits.double().log_softmax(dim=1)
    return float(-(log_p.exp() * log_p).sum(dim=1).mean())


@dataclass(frozen=True)
class Entropy:
    """Minus the mean entropy of the target's predictions; a collapse to one class gets the best score.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(4, 2), torch.zeros(4, 3), torch.arange(4)))
        >>> round(Entropy()(snapshot), 4)  # undecided: -log 3
        -1.0986
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in -log K..0."""
        return -mean_entropy(snapshot.target.logits)
