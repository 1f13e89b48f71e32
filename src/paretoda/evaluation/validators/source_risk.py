"""Source risk: the error on labelled source data that nothing was trained on."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.types import Snapshot


def zero_one(logits: Tensor, labels: Tensor) -> Tensor:
    """1 where the prediction is wrong, 0 where it is right: shape (n,), float64.

    Args:
        logits: Shape (n, K).
        labels: Shape (n,).
    """
    return (logits.argmax(dim=1) != labels).double()


@dataclass(frozen=True)
class SourceRisk:
    """Minus the error on the held-out source. It says nothing about the target, only that the task is still known."""

    def __call__(self, snapshot: Snapshot) -> float:
        """In -1..0."""
        held_out = snapshot.held_out_source
        return -float(zero_one(held_out.logits, held_out.labels).mean())
