"""BNM: a batch of target predictions with a large nuclear norm is certain and diverse (Cui et al., 2020).

The norm of n predictions of K classes is at most √(min(n, K) n), where all are certain and the classes, as far as
there are samples for them, equally frequent. What it lacks of this is never negative, with the same gradient.
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
    """The sum of the singular values.

    Args:
        predictions: shape (n, K).
    """
    values: Tensor = torch.linalg.svdvals(predictions)
    return values.sum()


@full_precision
def column_norm(predictions: Tensor) -> Tensor:
    """The sum of the min(n, K) largest norms of columns: nearly the nuclear norm where predictions are certain.

    Args:
        predictions: shape (n, K).
    """
    norms: Tensor = torch.linalg.vector_norm(predictions, dim=0)
    return norms.topk(min(predictions.shape)).values.sum()


class Bnm(Objective):
    """What the nuclear norm of the target's predictions lacks of its largest value.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        per: what the norm is divided by: the "sample"s n, as in the paper, or the "rank" min(n, K), as in the authors'
            code, which is n / K times as strong.
        fast: norms of columns instead of singular values (FBNM).
    """

    def __init__(
        self, features: int, classes: int, *, per: Literal["sample", "rank"] = "sample", fast: bool = False
    ) -> None:
        super().__init__()
        if per not in ("sample", "rank"):
            raise ValueError(f"per must be 'sample' or 'rank', got {per!r}")
        self.features, self.classes, self.per, self.fast = features, classes, per, fast

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing norm, divided."""
        predictions = target.logits.softmax(1)
        samples, rank = len(predictions), min(predictions.shape)
        norm = column_norm(predictions) if self.fast else nuclear_norm(predictions)
        return (math.sqrt(rank * samples) - norm) / (samples if self.per == "sample" else rank)

    def extra_repr(self) -> str:
        """Settings."""
        return f"per={self.per!r}, fast={self.fast}"
