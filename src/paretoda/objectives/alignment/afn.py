"""AFN: features with large norms transfer; those of both domains are made larger (Xu et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


@full_precision
def stepwise_gap(rows: Tensor, step: float) -> Tensor:
    """The mean squared distance of each norm from a goal that lies one step beyond it: step², whatever the rows.

    The goals are constants, so the gradient lengthens every row by the same pull, -2 step / n.

    Args:
        rows: shape (n, d).
        step: how much longer.
    """
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return (norms.detach() + step - norms).square().mean()


@full_precision
def hard_gap(rows: Tensor, radius: float) -> Tensor:
    """The squared distance of the mean norm from the radius.

    Args:
        rows: shape (n, d).
        radius: the norm that is wanted.
    """
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return (norms.mean() - radius).square()


class Afn(Objective):
    """Norms of source and target features grow step by step (SAFN), or towards one radius (HAFN).

    Step by step the value stays at 2 strength step², for the goal moves with the norms: only its gradient says
    anything, and schemes that read values learn nothing from it. The hard form's value falls as it should.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        hard: bring the mean norm of each domain to the radius.
        step: how much longer each norm shall become, without `hard`.
        radius: the mean norm that is wanted, with `hard`.
        strength: of value and gradient.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hard: bool = False,
        step: float = 1.0,
        radius: float = 25.0,
        strength: float = 0.05,
    ) -> None:
        super().__init__()
        if step <= 0 or radius <= 0:
            raise ValueError(f"AFN needs a positive step and a positive radius, got {step} and {radius}")
        self.features, self.classes = features, classes
        self.hard, self.step, self.radius, self.strength = hard, step, radius, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the sum of both domains' gaps."""
        gap, wanted = (hard_gap, self.radius) if self.hard else (stepwise_gap, self.step)
        return self.strength * (gap(source.features, wanted) + gap(target.features, wanted))

    def extra_repr(self) -> str:
        """Settings."""
        return f"hard={self.hard}, step={self.step}, radius={self.radius}, strength={self.strength}"
