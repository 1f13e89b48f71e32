"""The small linear programme of Eq. 6: max c·w over the simplex subject to A w >= r, solved exactly.

There are three solvers, by size: a clipped triangle (m <= 3), all vertices (m <= 6), HiGHS (more). Rows and objective
are scaled first: without it every solver errs when gradients differ by 1e4.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from paretoda.core.problem import Matrix, Vector
from paretoda.core.simplex import onto_simplex

TOLERANCE = 1e-9
"""Largest violation of a bound, relative to the largest coefficient of its row, in every solution."""

_RELAXED = TOLERANCE / 2
"""Relaxation of the bounds that is tried if rounding makes the programme of opposite gradients infeasible."""

_ROUNDING = 1e-12


def maximise(objective: Vector, rows: Matrix, bounds: Vector) -> Vector | None:
    """The w on the simplex with the largest objective·w and rows @ w >= bounds.

    Args:
        objective: Objective, shape (m,).
        rows: Rows of the constraints, shape (k, m).
        bounds: Bounds of the constraints, shape (k,); -inf drops the row.

    Returns:
        A vertex of the feasible set, shape (m,); among equal ones, the one with the largest smallest slack. None where
        the set is empty.

    Examples:
        >>> maximise(np.array([1.0, 0.0]), np.array([[0.0, 1.0]]), np.array([0.25]))
        array([0.75, 0.25])
    """
    size = len(objective)
    scales = np.abs(rows).max(axis=1, initial=0.0)
    if ((scales == 0) & (bounds > 0)).any():
        return None
    kept = np.isfinite(bounds) & (scales > 0)
    rows, bounds = rows[kept] / scales[kept, None], bounds[kept] / scales[kept]
    largest = np.abs(objective).max()
    objective = objective / largest if largest > 0 else objective
    solve = _clipped if size <= 3 else _enumerated if size <= 6 else _highs
    for relaxed in (0.0, _RELAXED):
        found = solve(objective, rows, bounds - relaxed)
        if found is not None:
            weights = onto_simplex(found)
            if (rows @ weights >= bounds - TOLERANCE).all():
                return weights
    return None


def _best(candidates: Matrix, objective: Vector, rows: Matrix, bounds: Vector) -> Vector:
    """The candidate with the largest objective; among equal ones that with the largest smallest slack."""
    values = candidates @ objective
    tied = candidates[values >= values.max() - _ROUNDING]
    slacks = (tied @ rows.T - bounds).min(axis=1, initial=np.inf)
    chosen: Vector = tied[int(np.argmax(slacks))]
    return chosen


def _clipped(objective: Vector, rows: Matrix, bounds: Vector) -> Vector | None:
    """Sutherland-Hodgman: cut the simplex (a point, a segment or a triangle) by one half-space after the other."""
    size = len(objective)
    corners = [tuple(float(i == j) for j in range(size)) for i in range(size)]
    for row, bound in zip(rows.tolist(), bounds.tolist(), strict=True):
        heights = [sum(a * x for a, x in zip(row, corner, strict=True)) - bound for corner in corners]
        if min(heights) >= 0:
            continue
        cut = []
        for index, (corner, height) in enumerate(zip(corners, heights, strict=True)):
            last, before = corners[index - 1], heights[index - 1]
            if (height >= 0) != (before >= 0):
                share = before / (before - height)
                cut.append(tuple(a + share * (b - a) for a, b in zip(last, corner, strict=True)))
            if height >= 0:
                cut.append(corner)
        if not cut:
            return None
        corners = cut
    return _best(np.array(corners), objective, rows, bounds)


@cache
def _choices(size: int, constraints: int) -> NDArray[np.int64]:
    """Combinations of size - 1 constraints that can be tight, shape (n, size - 1)."""
    return np.array(list(combinations(range(constraints), size - 1)), dtype=np.int64)


def _enumerated(objective: Vector, rows: Matrix, bounds: Vector) -> Vector | None:
    """All points where Σw = 1 and m - 1 of the constraints are tight, solved at once; the best feasible one."""
    size = len(objective)
    left = np.vstack([np.eye(size), rows])
    right = np.concatenate([np.zeros(size), bounds])
    tight = _choices(size, len(left))
    systems = np.concatenate([np.ones((len(tight), 1, size)), left[tight]], axis=1)
    values = np.concatenate([np.ones((len(tight), 1)), right[tight]], axis=1)
    regular = np.abs(np.linalg.det(systems)) > 1e-14
    systems, values = systems[regular], values[regular]
    points = np.linalg.solve(systems, values[:, :, None])
    points = (points + np.linalg.solve(systems, values[:, :, None] - systems @ points))[:, :, 0]
    feasible = (points @ left.T >= right - _ROUNDING).all(axis=1)
    return _best(points[feasible], objective, rows, bounds) if feasible.any() else None


def _highs(objective: Vector, rows: Matrix, bounds: Vector) -> Vector | None:
    """SciPy's HiGHS at its finest tolerance."""
    answer = linprog(
        -objective,
        A_ub=-rows if len(rows) else None,
        b_ub=-bounds if len(rows) else None,
        A_eq=np.ones((1, len(objective))),
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return np.asarray(answer.x, dtype=np.float64) if answer.status == 0 else None
