"""The same small linear programme in rational numbers: what the right answer is, without rounding.

The simplex method with Bland's rule. Slow, short, and independent of every solver that is judged by it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from paretoda.core.problem import Matrix, Vector

_RELAXED = 1e-9


def optimum(objective: Vector, rows: Matrix, bounds: Vector) -> float | None:
    """The largest objective·w over the simplex with rows @ w >= bounds, or None where no w is feasible.

    Rounding can empty the feasible set of opposite gradients; bounds then give way by 1e-9 of the row's largest entry.
    """
    kept = np.isfinite(bounds)
    rows, bounds = rows[kept], bounds[kept]
    found = _solve(objective, rows, bounds)
    if found is None:
        found = _solve(objective, rows, bounds - _RELAXED * np.abs(rows).max(axis=1, initial=0.0))
    return None if found is None else float(found)


def _solve(objective: Vector, rows: Matrix, bounds: Vector) -> Fraction | None:
    """Two phases on the tableau of [-rows | slacks | 0 | -bounds] and [1...1 | 0 | artificial | 1]."""
    if (bounds > 0).any():
        raise ValueError("bounds above 0 do not occur in these programmes")
    size, count = rows.shape[1], len(rows)
    width = size + count + 1
    tableau = []
    for place in range(count):
        slack = [Fraction(int(place == other)) for other in range(count)]
        tableau.append([Fraction(-x) for x in rows[place].tolist()] + slack + [Fraction(0), Fraction(-bounds[place])])
    tableau.append([Fraction(1)] * size + [Fraction(0)] * count + [Fraction(1), Fraction(1)])
    basis = [size + place for place in range(count)] + [width - 1]
    gains = [Fraction(0)] * (width - 1) + [Fraction(-1)]
    if _climb(tableau, basis, gains, width) < 0:
        return None
    if width - 1 in basis:
        # The artificial variable is 0 but basic: any other column of its row may take its place.
        place = basis.index(width - 1)
        column = next(c for c in range(width - 1) if tableau[place][c] != 0)
        _pivot(tableau, basis, place, column)
    gains = [Fraction(x) for x in objective.tolist()] + [Fraction(0)] * (count + 1)
    return _climb(tableau, basis, gains, width - 1)


def _climb(tableau: list[list[Fraction]], basis: list[int], gains: list[Fraction], columns: int) -> Fraction:
    """Pivot until no column among the first ones gains; returns the value. The simplex is bounded, so it ends."""
    while True:
        column = next((c for c in range(columns) if _reduced(tableau, basis, gains, c) > 0), None)
        if column is None:
            return sum((gains[b] * row[-1] for b, row in zip(basis, tableau, strict=True)), Fraction(0))
        ratios = [(row[-1] / row[column], basis[p], p) for p, row in enumerate(tableau) if row[column] > 0]
        _pivot(tableau, basis, min(ratios)[2], column)


def _reduced(tableau: list[list[Fraction]], basis: list[int], gains: list[Fraction], column: int) -> Fraction:
    return gains[column] - sum((gains[b] * row[column] for b, row in zip(basis, tableau, strict=True)), Fraction(0))


def _pivot(tableau: list[list[Fraction]], basis: list[int], place: int, column: int) -> None:
    pivot = tableau[place][column]
    tableau[place] = [x / pivot for x in tableau[place]]
    for other, row in enumerate(tableau):
        if other != place and row[column] != 0:
            factor = row[column]
            tableau[other] = [x - factor * y for x, y in zip(row, tableau[place], strict=True)]
    basis[place] = column
