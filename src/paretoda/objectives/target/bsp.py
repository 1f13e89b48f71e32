"""BSP: no direction of the features outweighs all others, in either domain (Chen et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


@full_precision
def largest_energy(rows: Tensor, k: int) -> Tensor:
    """The sum of the k largest squared singular values of the rows, as they are, not centred.

    They are the eigenvalues of the smaller product of the rows with themselves, whose gradient, unlike that of a
    full decomposition, is finite for equal singular values.

    Args:
        rows: shape (n, d).
        k: how many; all if there are fewer.
    """
    product = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    rising: Tensor = torch.linalg.eigvalsh(product)
    return rising[-k:].sum()


class Bsp(Objective):
    """The largest squared singular values of source and target features, to go with an adversarial alignment.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        k: number of singular values of each domain.
        strength: of value and gradient.
    """

    def __init__(self, features: int, classes: int, *, k: int = 1, strength: float = 1e-4) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        self.features, self.classes, self.k, self.strength = features, classes, k, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the sum over both domains."""
        return self.strength * (largest_energy(source.features, self.k) + largest_energy(target.features, self.k))

    def extra_repr(self) -> str:
        """Settings."""
        return f"k={self.k}, strength={self.strength}"
