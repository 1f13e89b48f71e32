"""GradVac: each gradient is turned until it is as similar to the others as they usually are (Wang et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from paretoda.core.loss_values import check_size
from paretoda.core.normalisation import gradient_norms
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights

_HIGHEST = 1 - 1e-6
"""Bound of the wanted cosines: no finite multiple of g_j makes another gradient parallel to it."""
_CANCELLED = 1e-9
"""Length of a turned gradient, relative to its parts, below which it has no direction."""


def gradvac(gram: Matrix, goals: Matrix, orders: Sequence[Sequence[int]]) -> tuple[Vector, Matrix]:
    """Weights of the sum of the turned gradients, and the cosines that they had when they met.

    Args:
        gram: Gram matrix A, shape (m, m).
        goals: Wanted cosines φ̂, shape (m, m).
        orders: For each gradient the order in which it meets the others; its own number is skipped.

    Returns:
        w, shape (m,), with d = Σ w_i g_i, and the cosines φ, shape (m, m), NaN where a gradient was zero.
    """
    norms = gradient_norms(gram)
    goals = np.clip(goals, -_HIGHEST, _HIGHEST)
    met = np.full(gram.shape, np.nan)
    total = np.zeros(len(gram))
    for own, order in enumerate(orders):
        # A turned gradient is known by its coefficients over the original ones.
        mixture = np.zeros(len(gram))
        mixture[own] = 1.0
        for other in order:
            length = float(np.sqrt(max(float(mixture @ gram @ mixture), 0.0)))
            if other == own or norms[other] == 0 or length <= _CANCELLED * (np.abs(mixture) @ norms):
                continue
            cosine = float(np.clip(gram[other] @ mixture / length / norms[other], -1, 1))
            goal = goals[own, other]
            met[own, other] = cosine
            if cosine < goal:
                turn = goal * np.sqrt(1 - cosine**2) / np.sqrt(1 - goal**2) - cosine
                mixture[other] += length / norms[other] * turn
        total += mixture
    return total, met


@dataclass(frozen=True)
class GradVac:
    """Sum of the gradients, each turned towards those that it is less similar to than usual.

    The usual cosine of each pair is a running average that starts at 0, so that the first step is PCGrad's.

    Args:
        decay: Share of the present cosine in the running averages: β of the paper.
        seed: Seed of the orders, which are drawn anew at every step; the same seed and step give the same orders.

    Raises:
        ValueError: The decay does not lie in [0, 1], or the seed is negative.

    Examples:
        >>> scheme = GradVac(decay=1.0)  # the last cosine is the goal
        >>> scheme(Problem([[1.0, 0.6], [0.6, 1.0]], [1.0, 1.0])).alpha  # no conflict: the plain sum
        array([0.5, 0.5])
        >>> scheme(Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])).alpha  # orthogonal is less than usual
        array([0.875, 0.875])
    """

    decay: float = 0.01
    seed: int = 0
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.decay <= 1:
            raise ValueError(f"decay must lie between 0 and 1, got {self.decay}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step and update the usual cosines."""
        size, steps = problem.size, self._memory.get("steps", 0)
        usual = np.array(self._memory.get("cosines", np.zeros((size, size))))
        check_size("GradVac", len(usual), size)
        random = np.random.default_rng((self.seed, steps))
        orders = [random.permutation(size).tolist() for _ in range(size)]
        weights, met = gradvac(problem.gram, usual, orders)
        usual = np.where(np.isnan(met), usual, (1 - self.decay) * usual + self.decay * met)
        self._memory.update(steps=steps + 1, cosines=usual.tolist())
        return Weights(weights / size, Move.COMBINED)

    def state_dict(self) -> dict[str, object]:
        """Return the usual cosines and the number of steps taken."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)
