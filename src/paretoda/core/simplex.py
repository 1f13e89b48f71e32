"""The simplex of weights: w >= 0, Σ w = 1."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from paretoda.core.problem import Matrix, Vector


def equal(size: int) -> Vector:
    """Centre of the simplex, 1/m everywhere: the plain sum of the losses."""
    return np.full(size, 1.0 / size)


def onto_simplex(weights: Vector) -> Vector:
    """Remove rounding errors from weights: negative ones become 0, and the sum 1."""
    positive = np.maximum(weights, 0.0)
    result: Vector = positive / positive.sum()
    return result


def lattice(size: int, divisions: int) -> Matrix:
    """All points of the simplex whose coordinates are multiples of 1/divisions, shape (n, size), in lexical order.

    Stars and bars: a point is the gaps between size - 1 bars among divisions stars.
    """
    choices = list(combinations(range(divisions + size - 1), size - 1))
    bars = np.array(choices, dtype=np.int64).reshape(len(choices), size - 1)
    ends = np.ones((len(bars), 1), dtype=np.int64)
    edges = np.hstack([-ends, bars, ends * (divisions + size - 1)])
    return (np.diff(edges, axis=1) - 1) / divisions
