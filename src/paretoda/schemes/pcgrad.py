"""PCGrad: each gradient loses its component against every other that it conflicts with (Yu et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights


def pcgrad(gram: Matrix, orders: Sequence[Sequence[int]]) -> Vector:
    """Weights of the sum of the projected gradients; all ones where nothing conflicts.

    Args:
        gram: Gram matrix A, shape (m, m).
        orders: For each gradient the order in which it meets the others; its own number is skipped.

    Returns:
        w, shape (m,), with d = Σ w_i g_i.
    """
    squares = np.diagonal(gram)
    total = np.zeros(len(gram))
    for own, order in enumerate(orders):
        # A projected gradient is known by its coefficients over the original ones.
        mixture = np.zeros(len(gram))
        mixture[own] = 1.0
        for other in order:
            product = gram[other] @ mixture
            if other != own and product < 0 < squares[other]:
                mixture[other] -= product / squares[other]
        total += mixture
    return total


@dataclass(frozen=True)
class PCGrad:
    """Sum of the gradients, each projected on the normal planes of those that it conflicts with.

    Args:
        seed: Seed of the orders, which are drawn anew at every step; the same seed and step give the same orders.

    Raises:
        ValueError: The seed is negative.

    Examples:
        >>> PCGrad()(Problem([[1.0, -0.5], [-0.5, 1.0]], [1.0, 1.0])).alpha  # each adds half of the other
        array([0.75, 0.75])
    """

    seed: int = 0
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        steps = self._memory.get("steps", 0)
        random = np.random.default_rng((self.seed, steps))
        orders = [random.permutation(problem.size).tolist() for _ in range(problem.size)]
        self._memory["steps"] = steps + 1
        return Weights(pcgrad(problem.gram, orders) / problem.size, Move.COMBINED)

    def state_dict(self) -> dict[str, object]:
        """Return the number of steps taken."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)
