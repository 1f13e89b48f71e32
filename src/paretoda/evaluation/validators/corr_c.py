"""Class correlation: predictions with PᵀP near the identity are certain and use all classes evenly (Tu et al., 2023).

Its authors call high values good. The code of MixVal takes the lowest, for which uniform and collapsed predictions win;
we follow the authors.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.types import Snapshot


def class_correlation(probabilities: Tensor) -> float:
    """tr(C) / (√K |C|) of C = PᵀP, the cosine of C and I: 1 for balanced one-hots, 1/√K for uniform or collapsed ones.

    Args:
        probabilities: Probabilities, shape (n, K).
    """
    p = probabilities.double()
    c = p.T @ p
    return float(c.trace() / (c.norm() * c.shape[0] ** 0.5))


@dataclass(frozen=True)
class CorrC:
    """Cosine of the class correlations of the target's predictions and the identity.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(4, 2), torch.zeros(4, 4), torch.arange(4)))
        >>> round(CorrC()(snapshot), 4)  # uniform predictions: 1/√4
        0.5
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 1/√K..1."""
        return class_correlation(snapshot.target.logits.double().softmax(dim=1))
