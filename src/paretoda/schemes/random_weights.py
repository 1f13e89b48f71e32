"""Random weights: the control that a comparison of schemes needs (Lin et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from paretoda.core.problem import Move, Problem, Vector, Weights


@dataclass(frozen=True)
class RandomWeights:
    """Weights that are drawn anew at every step, on average the plain sum.

    Args:
        concentration: Parameter of the symmetric Dirichlet distribution: 1 is uniform on the simplex, larger ones are
            nearer to equal weights, smaller ones nearer to one objective at a time.
        seed: Seed of the weights; the same seed and step give the same weights.

    Raises:
        ValueError: The concentration is out of its range, or the seed is negative.

    Examples:
        >>> scheme = RandomWeights()
        >>> alpha = scheme.ahead(np.ones(3)).alpha
        >>> len(alpha), round(float(alpha.sum()), 9)
        (3, 1.0)
    """

    concentration: float = 1.0
    seed: int = 0
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.01 <= self.concentration <= 1e6:
            raise ValueError(f"concentration must lie between 0.01 and 1e6, got {self.concentration}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        return self.ahead(problem.losses)

    def ahead(self, losses: Vector, /) -> Weights:
        """Return the weights of this step, which depend on nothing but its number."""
        steps = self._memory.get("steps", 0)
        random = np.random.default_rng((self.seed, steps))
        self._memory["steps"] = steps + 1
        return Weights(random.dirichlet(np.full(len(losses), self.concentration)), Move.FIXED)

    def state_dict(self) -> dict[str, object]:
        """Return the number of steps taken."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)
