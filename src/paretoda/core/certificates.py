"""Properties of a direction or a point that follow from the inner products alone."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from paretoda.core.linear_program import TOLERANCE
from paretoda.core.min_norm import min_norm
from paretoda.core.normalisation import cosines, directions
from paretoda.core.problem import Matrix, Problem, Vector


def slopes(problem: Problem, alpha: Vector) -> Vector:
    """<g_j, d> for d = Σ alpha_i g_i, relative to the largest term max_i |A_ji|, shape (m,); 0 for a zero gradient.

    A positive slope means that objective j falls along -d, to first order.
    """
    scales = np.abs(problem.gram).max(axis=1)
    return (problem.gram @ alpha) / np.where(scales > 0, scales, 1.0)


def guide_slope(problem: Problem, alpha: Vector) -> float:
    """<g_v, d>, relative to max_i |b_i|; 0 where the guide is orthogonal to every objective."""
    dots = problem.need_guide("guide_slope").dots
    scale = np.abs(dots).max()
    return float(dots @ alpha / scale) if scale > 0 else 0.0


def is_common_descent(problem: Problem, alpha: Vector, tolerance: float = TOLERANCE) -> bool:
    """Whether no objective rises along -d, to first order and within the tolerance.

    Examples:
        >>> problem = Problem(np.array([[1.0, -0.5], [-0.5, 1.0]]), np.ones(2))
        >>> is_common_descent(problem, np.array([0.5, 0.5])), is_common_descent(problem, np.array([1.0, 0.0]))
        (True, False)
    """
    return bool((slopes(problem, alpha) >= -tolerance * max(1.0, np.abs(alpha).sum())).all())


def keeps_guarantee(problem: Problem, alpha: Vector, tolerance: float = TOLERANCE) -> bool:
    """Our theorem in place of the paper's Theorem 1: either L_val falls, or no objective rises (to first order)."""
    if problem.guide is not None and guide_slope(problem, alpha) > 0:
        return True
    return is_common_descent(problem, alpha, tolerance)


def is_stationary(gram: Matrix, tolerance: float = 1e-12) -> bool:
    """Whether the point is Pareto stationary: no direction lowers every objective at once.

    By Gordan's theorem this holds exactly when 0 lies in the convex hull of the gradients. The gradients are compared
    as unit vectors, because scaling an objective changes nothing; a zero gradient is stationary by itself.
    """
    if (np.diagonal(gram) == 0).any():
        return True
    angles = cosines(gram)
    weights = min_norm(angles)
    return bool(weights @ angles @ weights <= tolerance)


def is_critical(gram: Matrix, tolerance: float = 1e-12) -> bool:
    """Whether the point is Pareto critical in the paper's sense: nothing can be lowered without raising another.

    By Stiemke's theorem this holds exactly when Σ w_i g_i = 0 with every w_i > 0, that is, when each -g_j lies in the
    cone of the others. It is stronger than `is_stationary`: a zero gradient alone does not make a point critical.
    """
    present = np.flatnonzero(np.diagonal(gram) > 0)
    units = directions(gram[np.ix_(present, present)]).factor if len(present) else np.zeros((0, 0))
    for j in range(len(present)):
        _, rest = nnls(np.delete(units, j, axis=1), -units[:, j]) if len(present) > 1 else (None, 1.0)
        if rest**2 > tolerance:
            return False
    return True
