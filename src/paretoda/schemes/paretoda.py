"""ParetoDA, the default: the step nearest to a wanted one along which neither an objective nor the guide rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.certificates import guide_slope, is_common_descent
from paretoda.core.descent_cone import nearest_descent
from paretoda.core.linear_program import TOLERANCE
from paretoda.core.min_norm import min_norm
from paretoda.core.problem import Move, Problem, Vector, Weights

PRIOR = {"alignment": 0.3, "target": 0.3}
"""Factor of an objective of this role in the wanted weights; 1 for any other (docs/decisions/0008)."""


_HELD = 10.0
"""Weights that are held for further steps are at most so many times the wanted ones: a gradient that is short now, and
has a large weight therefore, may be long in the next batch."""
_VANISHED = 1e-6
"""Length of a direction, relative to the wanted one, below which it is nothing but rounding errors."""


@dataclass(frozen=True)
class ParetoDA:
    """min |Gα - Gw|² subject to α >= 0, Aα >= 0, b·α >= 0.

    Where gradients agree this is the wanted step; a conflict changes it as little as possible. Where the guide forbids
    every such direction (only d = 0 is left) its constraint is dropped. No objective rises in either case, to first
    order.

    Args:
        lean: How strongly the wanted weights favour objectives that the guide agrees with: w_i ∝ exp(lean cos(g_i,
            g_v)).
        normalise: Whether the wanted weights make all gradients equally long: w_i ∝ 1 / |g_i|.
        prior: Factors of the wanted weights, one number for each objective; empty: `PRIOR` by role.

    Raises:
        ValueError: The lean is negative, or a factor is not positive.

    Examples:
        >>> from paretoda.core.problem import Guide
        >>> problem = Problem([[1.0, 0.0], [0.0, 1.0]], [0.7, 0.2], Guide([0.5, 0.5], square=1.0))
        >>> weights = ParetoDA()(problem)
        >>> weights.alpha.round(4), weights.move.value
        (array([0.5, 0.5]), 'guided')
    """

    lean: float = 5.0
    normalise: bool = False
    prior: tuple[float, ...] = ()
    guided: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not np.isfinite(self.lean) or self.lean < 0:
            raise ValueError(f"lean must be a number from 0 on, got {self.lean}")
        if any(not np.isfinite(part) or part <= 0 for part in self.prior):
            raise ValueError(f"prior must be positive numbers, got {self.prior}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of the nearest direction.

        Raises:
            GuideMissingError: The problem has no guide.
        """
        guide = problem.need_guide("paretoda")
        wanted = self.wanted(problem)
        alpha = nearest_descent(problem.gram, guide.dots, wanted)
        allowed = is_common_descent(problem, alpha) and guide_slope(problem, alpha) >= -TOLERANCE
        if allowed and not _vanishes(problem, alpha, wanted):
            return Weights(alpha, Move.GUIDED, lasting=np.minimum(alpha, _HELD * wanted))
        alpha = nearest_descent(problem.gram, wanted=wanted)
        if is_common_descent(problem, alpha):
            return Weights(alpha, Move.DESCENT, lasting=np.minimum(alpha, _HELD * wanted))
        return Weights(min_norm(problem.gram), Move.SAFETY_NET)

    def wanted(self, problem: Problem) -> Vector:
        """Weights w of the step that would be taken if nothing rose along it; they sum to 1."""
        guide = problem.need_guide("paretoda")
        if self.prior and len(self.prior) != problem.size:
            raise ValueError(f"prior has {len(self.prior)} numbers for {problem.size} objectives")
        lengths = np.sqrt(np.diagonal(problem.gram))
        weights = np.array(self.prior or _by_role(problem))
        if self.lean > 0:
            product = lengths * np.sqrt(guide.square)
            cosines = np.divide(guide.dots, product, out=np.zeros(problem.size), where=product > 0)
            weights = weights * np.exp(self.lean * np.clip(cosines, -1, 1))
        if self.normalise and lengths.max() > 0:
            weights = weights / np.maximum(lengths, 1e-6 * lengths.max())
        wanted: Vector = weights / weights.sum()
        return wanted


def _by_role(problem: Problem) -> list[float]:
    """The default prior; 1 for all objectives without roles."""
    return [PRIOR.get(role, 1.0) for role in problem.roles] or [1.0] * problem.size


def _vanishes(problem: Problem, alpha: Vector, wanted: Vector) -> bool:
    """Whether the direction is zero relative to the wanted one, up to the rounding errors of the projection."""
    return bool(alpha @ problem.gram @ alpha <= _VANISHED**2 * (wanted @ problem.gram @ wanted))
