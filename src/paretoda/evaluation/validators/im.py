"""Information maximisation: certain of every sample, with all classes in use (Bridle et al., 1991)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.evaluation.validators.entropy import mean_entropy
from paretoda.types import Snapshot


def mutual_information(logits: Tensor) -> float:
    """H(mean p) - mean H(p): log K for balanced one-hot predictions, 0 for uniform and for collapsed ones.

    Args:
        logits: Logits, shape (n, K).
    """
    mean = logits.double().softmax(dim=1).mean(dim=0)
    return float(-mean.xlogy(mean).sum()) - mean_entropy(logits)


@dataclass(frozen=True)
class IM:
    """Mutual information of target samples and predicted classes.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(3, 2), 100 * torch.eye(3), torch.arange(3)))
        >>> round(IM()(snapshot), 4)  # certain and balanced: log 3
        1.0986
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 0..log K."""
        return mutual_information(snapshot.target.logits)
