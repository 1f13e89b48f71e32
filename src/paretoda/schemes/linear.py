"""Fixed weights: the weighted sum of the losses, which every baseline uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.problem import Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


@dataclass(frozen=True)
class Linear:
    """d = Σ w_i g_i with fixed w; without weights the plain sum.

    Args:
        weights: One weight for each loss, in their order; empty: 1 for every loss.

    Raises:
        ValueError: A weight is not finite.

    Examples:
        >>> Linear((1.0, 0.5))(Problem([[1.0, 0.0], [0.0, 1.0]], [0.7, 0.2])).alpha  # weights over m
        array([0.5 , 0.25])
    """

    weights: tuple[float, ...] = ()
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite, got {self.weights}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the fixed weights."""
        return self.ahead(problem.losses)

    def ahead(self, losses: Vector, /) -> Weights:
        """Return the fixed weights, which are known before any gradient.

        Raises:
            ValueError: There is another number of losses.
        """
        size = len(losses)
        if not self.weights:
            return Weights(equal(size), Move.FIXED)
        if len(self.weights) != size:
            raise ValueError(f"linear has {len(self.weights)} weights for {size} losses")
        return Weights(np.array(self.weights) / size, Move.FIXED)
