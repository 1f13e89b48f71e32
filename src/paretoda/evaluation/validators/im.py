"""Information maximisation: sure of every sample, and all classes in use (Bridle et al., 1991)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.evaluation.validators.entropy import mean_entropy
from paretoda.types import Snapshot


def mutual_information(logits: Tensor) -> float:
    """H(mean p) - mean H(p): log K for balanced one-hot predictions, 0 for uniform and for collapsed ones.

    Args:
        logits: Shape (n, K).
    """
    mean = logits.double().softmax(dim=1).mean(dim=0)
    return float(-mean.xlogy(mean).sum()) - mean_entropy(logits)


@dataclass(frozen=True)
class IM:
    """The mutual information of target samples and predicted classes."""

    def __call__(self, snapshot: Snapshot) -> float:
        """In 0..log K."""
        return mutual_information(snapshot.target.logits)
