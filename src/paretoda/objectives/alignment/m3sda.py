"""M3SDA: moments of every source match those of the target and of the other sources (Peng et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


@full_precision
def distance_of_moments(one: Tensor, other: Tensor, order: int) -> Tensor:
    """Length of the difference of the means of the k-th powers: |E(x^k) - E(z^k)|.

    Args:
        one: Features, shape (n, d).
        other: Features, shape (m, d).
        order: k, from 1 on.

    Examples:
        >>> distance_of_moments(torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0]]), 2)
        tensor(5.)
    """
    length: Tensor = torch.linalg.vector_norm(one.pow(order).mean(0) - other.pow(order).mean(0))
    return length


def moment_distance(sources: Sequence[Tensor], target: Tensor, moments: int) -> Tensor:
    """Sum over k of the mean distance of a source from the target, and the mean distance of two sources.

    Args:
        sources: Features of each source, shape (n, d).
        target: Features of the target, shape (m, d).
        moments: Largest k.
    """
    pairs = [[(source, target) for source in sources], list(combinations(sources, 2))]
    means = [
        torch.stack([distance_of_moments(one, other, order) for one, other in group]).mean()
        for order in range(1, moments + 1)
        for group in pairs
        if group
    ]
    return torch.stack(means).sum()


class M3sda(Objective):
    """Distances of the moments of every source from those of the target, and of the sources from each other.

    With one source only the distance from the target is left.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        moments: Largest order of the moments; 2 in the paper's formula, 5 in its code.
        strength: Factor of the value and the gradient.

    Raises:
        ValueError: There are no moments, or the strength is not positive.

    Examples:
        >>> index = torch.arange(4)
        >>> rows = torch.tensor([[0.0], [0.0], [2.0], [2.0]])
        >>> source = Source(rows, torch.zeros(4, 2), index, labels=index % 2, domain=index // 2)
        >>> target = Target(rows + 1, torch.zeros(4, 2), index)
        >>> M3sda(1, 2, moments=1, strength=1.0)(source, target)  # (2 + 0) / 2 from the target, 2 from each other
        tensor(3.)
    """

    reads_all_sources = True

    def __init__(self, features: int, classes: int, *, moments: int = 2, strength: float = 0.1) -> None:  # noqa: ARG002
        super().__init__()
        if moments < 1 or not 0 < strength < float("inf"):
            raise ValueError(f"moments must be at least 1 and strength positive, got {moments} and {strength}")
        self.moments, self.strength = moments, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the sum of the distances."""
        count = 1 if source.domain is None else int(source.domain.max()) + 1
        rows = [source.of(number).features for number in range(count)]
        return self.strength * moment_distance(rows, target.features, self.moments)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"moments={self.moments}, strength={self.strength}"
