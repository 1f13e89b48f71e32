"""CAGrad: the step near the mean gradient along which the worst objective falls fastest (Liu et al., 2021).

The paper minimises <g_w, g_0> + c |g_0| |g_w| over the simplex. We solve the primal problem: raise the level t for as
long as some d with <d, g_i> >= t for all i lies within c |g_0| of g_0. Each t is a least-distance programme, and the
distance is convex in t: a few safeguarded Newton steps reach the last digits, also for singular Gram matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal

_ROUNDING = 1e-13
_FLOOR = 1e-14
"""Smallest eigenvalue of the cosines that counts as non-zero, so that rounding is not taken for a direction."""
_FARTHEST = 1e4
"""Largest weight of a unit gradient, relative to the radius; beyond it d cannot be told from rounding errors."""
_CANCELLED = 1e-10
"""Norm of the mean gradient, relative to the longest, below which it counts as zero."""


def least_move(units: Matrix, heights: Vector) -> tuple[Vector, float]:
    """The shortest x with <x, u_i> >= heights_i (least-distance programme of Lawson and Hanson).

    Args:
        units: Unit vectors u_i as columns, shape (k, n).
        heights: Heights, shape (n,).

    Returns:
        y >= 0, shape (n,), with x = Σ y_i u_i, and |x|; (0, inf) where no x reaches the heights, or none with Σy < 1e4.
    """
    goal = np.zeros(len(units) + 1)
    goal[-1] = 1.0
    pushes, _ = nnls(np.vstack([units, heights]), goal, maxiter=100 * len(heights))
    gap = 1.0 - heights @ pushes  # = 1 / (1 + |x|²)
    if pushes.sum() >= _FARTHEST * gap:
        return np.zeros_like(heights), np.inf
    pushes = pushes / gap
    return pushes, float(np.linalg.norm(units @ pushes))


def highest_move(units: Matrix, norms: Vector, heights: Vector, high: float) -> Vector:
    """The shortest of the moves |x| <= 1 whose level t is highest: <x, u_i> + heights_i >= t / norms_i for all i.

    Args:
        units: Unit vectors u_i as columns, shape (k, n).
        norms: Norms, shape (n,).
        heights: Heights, shape (n,).
        high: Upper bound of t.

    Returns:
        y as in `least_move`; |x| < 1 only where no higher level can be reached at all.
    """
    low, level = float((norms * heights).min()), high
    best = np.zeros_like(norms)
    enough = _ROUNDING * (high - low)
    for _ in range(100):
        pushes, length = least_move(units, level / norms - heights)
        if length <= 1 + _ROUNDING:
            low, best = level, pushes
        else:
            high = level
        if high - low <= enough or abs(length - 1) <= _ROUNDING:
            break
        slope = (pushes / norms).sum()  # of |x|² / 2 over the level
        newton = level - (length - 1) * length / slope if slope > 0 else high
        level = newton if low < newton < high else (low + high) / 2
    return best


def cagrad(gram: Matrix, c: float) -> Vector:
    """Weights of the d that maximises min_i <d, g_i> within c |g_0| of the mean gradient g_0.

    Where 0 is a convex combination of the gradients, the best level may be 0 with room to spare: d is then the
    direction nearest to g_0 that raises no objective. Where g_0 = 0, there is no room, and d = g_0.

    Args:
        gram: Gram matrix A, shape (m, m).
        c: Radius of the ball, relative to |g_0|.

    Returns:
        w, shape (m,), with d = Σ w_i g_i.
    """
    weights = equal(len(gram))
    present = np.flatnonzero(np.diagonal(gram) > 0)
    if c == 0 or not len(present):
        return weights
    part = gram[np.ix_(present, present)]
    norms = np.sqrt(np.diagonal(part) / np.diagonal(part).max())
    values, vectors = np.linalg.eigh(cosines(part))
    units = np.sqrt(np.where(values > _FLOOR, values, 0.0))[:, None] * vectors.T
    mean = units @ norms / len(gram)
    length = float(np.linalg.norm(mean))
    if length <= _CANCELLED:
        return weights
    radius = c * length
    heights = mean @ units / radius
    high = min(float((norms * (heights + 1)).min()), length + length / c)
    if len(present) < len(gram):
        high = min(high, 0.0)
    weights[present] += radius * highest_move(units, norms, heights, high) / norms
    return weights


@dataclass(frozen=True)
class CAGrad:
    """The best worst case within c |g_0| of the mean gradient g_0.

    Args:
        c: Relative radius; 0 gives the mean gradient, and 1 or more never raises an objective.
        rescale: Divide by 1 + c², as the authors' code can, so that a larger c does not mean a longer step.

    Raises:
        ValueError: c is negative or infinite.

    Examples:
        >>> CAGrad(c=0.0)(Problem([[1.0, -0.5], [-0.5, 4.0]], [1.0, 1.0])).alpha  # the mean gradient
        array([0.5, 0.5])
    """

    c: float = 0.4
    rescale: bool = False
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.c < np.inf:
            raise ValueError(f"c must be 0 or more, got {self.c}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step; the move is a fallback if every gradient is zero."""
        alpha = cagrad(problem.gram, self.c)
        move = Move.COMBINED if problem.gram.any() else Move.FALLBACK
        return Weights(alpha / (1 + self.c**2) if self.rescale else alpha, move)
