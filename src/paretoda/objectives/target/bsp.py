"""BSP: no direction of the features dominates all others, in either domain (Chen et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


@full_precision
def largest_energy(rows: Tensor, k: int) -> Tensor:
    """Sum of the k largest squared singular values of the rows, which are not centred.

    They are the eigenvalues of the smaller product of the rows with themselves; its gradient, unlike that of a full
    decomposition, is finite for equal singular values.

    Args:
        rows: Features, shape (n, d).
        k: Number of singular values; all if there are fewer.

    Examples:
        >>> round(largest_energy(torch.diag(torch.tensor([3.0, 1.0])), k=1).item(), 4)
        9.0
    """
    product = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    rising: Tensor = torch.linalg.eigvalsh(product)
    return rising[-k:].sum()


class Bsp(Objective):
    """Largest squared singular values of source and target features, as a complement to an adversarial alignment.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        k: Number of singular values of each domain.
        strength: Factor of the value and the gradient.

    Raises:
        ValueError: k is below 1.

    Examples:
        >>> source = Source(torch.eye(3), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> target = Target(torch.eye(3), torch.zeros(3, 3), torch.arange(3))
        >>> round(Bsp(features=3, classes=3, strength=1.0)(source, target).item(), 4)
        2.0
    """

    def __init__(self, features: int, classes: int, *, k: int = 1, strength: float = 1e-4) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        self.features, self.classes, self.k, self.strength = features, classes, k, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the sum over both domains."""
        return self.strength * (largest_energy(source.features, self.k) + largest_energy(target.features, self.k))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"k={self.k}, strength={self.strength}"
