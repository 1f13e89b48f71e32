"""AFN: adaptive feature norm, which enlarges the feature norms of both domains (Xu et al., 2019).

Features with large norms transfer better.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


@full_precision
def stepwise_gap(rows: Tensor, step: float) -> Tensor:
    """Mean squared distance of each norm from a goal one step beyond it; its value is always step².

    The goals are constants, so the gradient lengthens every row by the same pull, -2 step / n.

    Args:
        rows: Features, shape (n, d).
        step: Difference between the goal and the present norm.

    Examples:
        >>> stepwise_gap(torch.ones(2, 4), step=1.0)
        tensor(1.)
    """
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return (norms.detach() + step - norms).square().mean()


@full_precision
def hard_gap(rows: Tensor, radius: float) -> Tensor:
    """Squared distance of the mean norm from the radius.

    Args:
        rows: Features, shape (n, d).
        radius: Desired mean norm.

    Examples:
        >>> hard_gap(torch.ones(2, 4), radius=5.0)
        tensor(9.)
    """
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return (norms.mean() - radius).square()


class Afn(Objective):
    """Feature norms of source and target grow step by step (SAFN) or towards one radius (HAFN).

    In the stepwise form the value is always 2 strength step², because the goal moves with the norms: only the gradient
    is informative, and schemes that read loss values learn nothing from it. The value of the hard form decreases as
    usual.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        hard: Move the mean norm of each domain to the radius.
        step: Increase of each norm that is aimed at, without `hard`.
        radius: Desired mean norm, with `hard`.
        strength: Factor of the value and the gradient.

    Raises:
        ValueError: The step or the radius is not positive.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> round(Afn(features=4, classes=3)(source, target).item(), 4)
        0.1
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
        """Return the strength times the sum of the gaps of both domains."""
        gap, wanted = (hard_gap, self.radius) if self.hard else (stepwise_gap, self.step)
        return self.strength * (gap(source.features, wanted) + gap(target.features, wanted))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"hard={self.hard}, step={self.step}, radius={self.radius}, strength={self.strength}"
