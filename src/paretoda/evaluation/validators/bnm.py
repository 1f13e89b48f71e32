"""Nuclear norm of the target's predictions, which grows with certainty and with diversity (Cui et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretoda.types import Snapshot


def nuclear_norm_per_sample(probabilities: Tensor) -> float:
    """Sum of the singular values over n: 1 for I_K, √(K/n) at best, 1/√(nK) for uniform predictions.

    Args:
        probabilities: Probabilities, shape (n, K).
    """
    return float(torch.linalg.svdvals(probabilities.double()).sum() / len(probabilities))


@dataclass(frozen=True)
class BNM:
    """Nuclear norm of all predictions on the target, over their number; comparable only on the same target.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(3, 2), 100 * torch.eye(3), torch.arange(3)))
        >>> round(BNM()(snapshot), 4)
        1.0
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 1/√(nK)..√(K/n)."""
        return nuclear_norm_per_sample(snapshot.target.logits.double().softmax(dim=1))
