"""ParetoDA as printed: the linear programme of Eq. 6, corrected where the paper's Theorem 1 fails (Lv et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from paretoda.core.linear_program import TOLERANCE, maximise
from paretoda.core.min_norm import min_norm
from paretoda.core.normalisation import rescale, scale_factors, undo_scaling
from paretoda.core.problem import Guide, Matrix, Move, Problem, Vector, Weights


def guided_bounds(dots: Vector) -> Vector:
    """Right-hand sides of Eq. 6 for a guide with b = dots.

    J = {b_j > 0} may rise (-inf), except J* = argmax b, which must not (0); the others may rise no faster than along
    the guide itself (b_j <= 0). Where J is empty nothing may rise.
    """
    if (dots <= 0).all():
        return np.zeros(len(dots))
    bounds = np.where(dots > 0, -np.inf, dots)
    bounds[dots == dots.max()] = 0.0
    return bounds


def descend(objective: Vector, gram: Matrix) -> Weights:
    """The largest objective·w on the simplex with no objective rising; min-norm weights on numerical failure."""
    weights = maximise(objective, gram, np.zeros(len(gram)))
    if weights is None:
        return Weights(min_norm(gram), Move.SAFETY_NET)
    return Weights(weights, Move.DESCENT)


@dataclass(frozen=True)
class ParetoPaper:
    """Eq. 6: follow the held-out gradient as far as the objectives allow.

    While L_val > threshold: max b·w subject to `guided_bounds`. If its optimum is not positive, the printed programme
    lets an objective rise for nothing (Theorem 1 is false there), so it is solved again with all bounds 0. Otherwise
    descend: max (A1/m)·w with no objective rising. So, to first order: either L_val falls, or no objective rises.

    Args:
        threshold: ε of the paper, below which the guide's loss counts as zero.
        normalise: "l2" solves for unit gradients, so that the scale of a loss does not matter.

    Examples:
        >>> problem = Problem([[1.0, 0.0], [0.0, 1.0]], [0.7, 0.2], Guide([0.9, 0.1], square=1.0, loss=0.5))
        >>> ParetoPaper()(problem).alpha  # the guide agrees with the first objective
        array([1., 0.])
    """

    threshold: float = 1e-3
    normalise: Literal["none", "l2"] = "none"
    guided: ClassVar[bool] = True

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the solution of Eq. 6.

        Raises:
            GuideMissingError: The problem has no guide.
        """
        problem.need_guide("paretoda-paper")
        by = scale_factors(problem, self.normalise)
        scaled = rescale(problem, by)
        weights = self._solve(scaled.gram, scaled.need_guide("paretoda-paper"))
        return Weights(undo_scaling(weights.alpha, by), weights.move)

    def _solve(self, gram: Matrix, guide: Guide) -> Weights:
        if guide.loss <= self.threshold:
            return descend(gram.mean(axis=1), gram)
        dots = guide.dots
        if (dots > 0).any():
            weights = maximise(dots, gram, guided_bounds(dots))
            if weights is not None and dots @ weights > TOLERANCE * np.abs(dots).max():
                return Weights(weights, Move.GUIDED)
        return descend(dots, gram)
