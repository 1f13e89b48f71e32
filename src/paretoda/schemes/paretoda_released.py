"""ParetoDA as released: what the authors' script actually computes (BIT-DA/ParetoDA, commit 6691766)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.linear_program import maximise
from paretoda.core.problem import Move, Problem, Vector, Weights

_PLAIN = ("source", "alignment")
"""Roles of the objectives whose plain gradients the script adds."""


@dataclass(frozen=True)
class ParetoReleased:
    """A descent programme with the guide as a constraint, plus the plain gradients of source and alignment.

    The script's guided branch requires L_val > 1e-3, but its L_val is minus a mutual information, so it never runs.
    What runs is max 1ᵀAw over the simplex subject to Aw >= 0 and b·w >= min(max b, 0); the step then is m Σ w_i g_i
    plus the gradient of L_S + L_D, which a later backward pass adds to the shared parameters. Where the programme has
    no solution the script takes w = (1, ..., 1), three times the usual sum; so do we, and the report counts it as a
    fallback. None of ParetoDA's guarantees holds for this step.

    Args:
        extra: Add the plain gradients, as the script does.

    Examples:
        >>> from paretoda.core.problem import Guide
        >>> problem = Problem([[1.0, 0.0], [0.0, 4.0]], [0.7, 0.2], Guide([0.5, 0.5], square=1.0))
        >>> ParetoReleased()(problem).alpha  # (0, 1) by the programme, and half of the first gradient
        array([0.5, 1. ])
    """

    extra: bool = True
    guided: ClassVar[bool] = True

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the script's weights; alpha sums to 1 + (m - 1)/m.

        Raises:
            GuideMissingError: The problem has no guide.
        """
        dots = problem.need_guide("paretoda-released").dots
        rows = np.vstack([problem.gram, dots])
        bounds = np.zeros(problem.size + 1)
        bounds[-1] = min(dots.max(), 0.0)
        alpha = maximise(problem.gram.sum(axis=0), rows, bounds)
        move = Move.COMBINED if self.extra else Move.DESCENT
        if alpha is None:
            alpha, move = np.ones(problem.size), Move.FALLBACK
        if self.extra:
            alpha = alpha + _all_but_target(problem) / problem.size
        return Weights(alpha, move)


def _all_but_target(problem: Problem) -> Vector:
    """1 for source and alignment, 0 for target losses; without such roles the last objective is the target loss."""
    plain = np.array([float(role in _PLAIN) for role in problem.roles])
    if plain.any():
        return plain
    return np.array([1.0] * (problem.size - 1) + [0.0])
