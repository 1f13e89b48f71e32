"""BNM: a batch of target predictions with a large nuclear norm is certain and diverse (Cui et al., 2020).

The norm of n predictions of K classes is at most √(min(n, K) n), which it reaches where all predictions are certain and
the classes, as far as there are samples for them, are equally frequent. The difference to this bound is never negative
and has the same gradient up to its sign.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


@full_precision
def nuclear_norm(predictions: Tensor) -> Tensor:
    """Sum of the singular values.

    Args:
        predictions: Predictions, shape (n, K).

    Examples:
        >>> nuclear_norm(torch.eye(3)).item()
        3.0
    """
    values: Tensor = torch.linalg.svdvals(predictions)
    return values.sum()


@full_precision
def column_norm(predictions: Tensor) -> Tensor:
    """Sum of the min(n, K) largest norms of columns: nearly the nuclear norm where predictions are certain.

    Args:
        predictions: Predictions, shape (n, K).
    """
    norms: Tensor = torch.linalg.vector_norm(predictions, dim=0)
    return norms.topk(min(predictions.shape)).values.sum()


class Bnm(Objective):
    """Difference between the largest possible nuclear norm of the target's predictions and the actual one.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        per: Divisor of the norm: the number n of "sample"s, as in the paper, or the "rank" min(n, K), as in the
            authors' code, which is n / K times as strong.
        fast: Use norms of columns instead of singular values (FBNM).

    Raises:
        ValueError: The divisor is unknown.

    Examples:
        >>> certain = Target(torch.zeros(3, 2), 100 * torch.eye(3), torch.arange(3))
        >>> source = Source(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> abs(Bnm(features=2, classes=3)(source, certain).item()) < 1e-6
        True
    """

    def __init__(
        self, features: int, classes: int, *, per: Literal["sample", "rank"] = "sample", fast: bool = False
    ) -> None:
        super().__init__()
        if per not in ("sample", "rank"):
            raise ValueError(f"per must be 'sample' or 'rank', got {per!r}")
        self.features, self.classes, self.per, self.fast = features, classes, per, fast

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the difference to the bound, divided."""
        predictions = target.logits.softmax(1)
        samples, rank = len(predictions), min(predictions.shape)
        norm = column_norm(predictions) if self.fast else nuclear_norm(predictions)
        return (math.sqrt(rank * samples) - norm) / (samples if self.per == "sample" else rank)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"per={self.per!r}, fast={self.fast}"
