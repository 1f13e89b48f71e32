"""ParetoDA, our default: the step nearest to the plain sum along which neither an objective nor the guide rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paretoda.core.certificates import guide_slope, is_common_descent
from paretoda.core.linear_program import TOLERANCE
from paretoda.core.min_norm import min_norm
from paretoda.core.nearest import nearest_descent
from paretoda.core.problem import Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


@dataclass(frozen=True)
class ParetoDA:
    """min |Gα - G1/m|² subject to α >= 0, Aα >= 0, b·α >= 0.

    Where gradients agree this is the plain sum; a conflict bends it as little as possible. Where the guide forbids
    every such direction (only d = 0 is left) its constraint is dropped. No objective rises in either case, to first
    order.
    """

    guided: ClassVar[bool] = True

    def __call__(self, problem: Problem, /) -> Weights:
        """The weights of the nearest direction."""
        guide = problem.need_guide("paretoda")
        alpha = nearest_descent(problem.gram, guide.dots)
        allowed = is_common_descent(problem, alpha) and guide_slope(problem, alpha) >= -TOLERANCE
        if allowed and not _vanishes(problem, alpha):
            return Weights(alpha, Move.GUIDED)
        alpha = nearest_descent(problem.gram)
        if is_common_descent(problem, alpha):
            return Weights(alpha, Move.DESCENT)
        return Weights(min_norm(problem.gram), Move.SAFETY_NET)


def _vanishes(problem: Problem, alpha: Vector) -> bool:
    """Whether the direction is zero beside the mean gradient, to 1e-9 of its length."""
    mean = equal(problem.size)
    return bool(alpha @ problem.gram @ alpha <= 1e-18 * (mean @ problem.gram @ mean))
