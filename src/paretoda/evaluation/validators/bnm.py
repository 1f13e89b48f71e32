"""The nuclear norm of the target's predictions grows with certainty and with diversity (Cui et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretoda.types import Snapshot


def nuclear_norm_per_sample(probabilities: Tensor) -> float:
    """The sum of the singular values over n: 1 for I_K, √(K/n) at best, 1/√(nK) for uniform predictions.

    Args:
        probabilities: Shape (n, K).
    """
    return float(torch.linalg.svdvals(probabilities.double()).sum() / len(probabilities))


@dataclass(frozen=True)
class BNM:
    """The nuclear norm of all predictions on the target, over their number; compare only on the same target."""

    def __call__(self, snapshot: Snapshot) -> float:
        """In 1/√(nK)..√(K/n)."""
        return nuclear_norm_per_sample(snapshot.target.logits.double().softmax(dim=1))
