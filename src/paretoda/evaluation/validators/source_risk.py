"""Source risk: the error on labelled source data that nothing was trained on."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paretoda.types import Snapshot


def zero_one(logits: Tensor, labels: Tensor) -> Tensor:
    """1 where the prediction is wrong, 0 where it is right: shape (n,), float64.

    Args:
        logits: Logits, shape (n, K).
        labels: Labels, shape (n,).
    """
    return (logits.argmax(dim=1) != labels).double()


@dataclass(frozen=True)
class SourceRisk:
    """Minus the error on the held-out source. It says nothing about the target, only that the task is still solved.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Source
        >>> labels = torch.tensor([0, 1, 0, 0])
        >>> held_out = Source(torch.zeros(4, 2), torch.eye(2).repeat(2, 1), torch.arange(4), labels=labels)
        >>> SourceRisk()(SimpleNamespace(held_out_source=held_out))
        -0.25
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in -1..0."""
        held_out = snapshot.held_out_source
        return -float(zero_one(held_out.logits, held_out.labels).mean())
