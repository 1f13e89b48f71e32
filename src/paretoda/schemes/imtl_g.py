"""IMTL-G: the step has the same projection on every unit gradient (Liu et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal

_RANK = 1e-10
"""Smallest eigenvalue of the cosines that counts as non-zero."""

_SMALLEST_SUM = 1e-2
"""Smallest sum of the weights, relative to the sum of their magnitudes, that they are divided by."""


def equal_projection(gram: Matrix) -> Vector:
    """The w with <Σ w_j g_j, g_i> / |g_i| = 1 for every i, by least squares where the gradients are dependent.

    Solved over unit gradients, so that scaling one loss never changes the direction.

    Args:
        gram: Gram matrix A, shape (m, m).

    Returns:
        w, shape (m,), 0 for zero gradients; all 0 where the unit gradients cancel, as two opposite ones do.
    """
    weights = np.zeros(len(gram))
    present = np.flatnonzero(np.diagonal(gram) > 0)
    if len(present):
        part = gram[np.ix_(present, present)]
        unit = np.linalg.pinv(cosines(part), rcond=_RANK, hermitian=True).sum(axis=1)
        if unit.sum() > _RANK:  # = |d|²
            weights[present] = unit / np.sqrt(np.diagonal(part))
    return weights


@dataclass(frozen=True)
class IMTLG:
    """Equal projections on all unit gradients, with weights that sum to 1 and may be negative.

    Where the weights nearly cancel, or their sum is negative, dividing by the sum would make the step huge, or turn it
    uphill for all objectives at once: the sum of their magnitudes is used instead. Where no direction has equal
    projections, the weights are equal. Both are reported as fallback.

    Examples:
        >>> IMTLG()(Problem([[1.0, 0.0], [0.0, 4.0]], [1.0, 1.0])).alpha.round(4)  # in proportion to 1 / |g_i|
        array([0.6667, 0.3333])
    """

    guided: ClassVar[bool] = False

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        weights = equal_projection(problem.gram)
        size = np.abs(weights).sum()
        if size == 0:
            return Weights(equal(problem.size), Move.FALLBACK)
        if weights.sum() < _SMALLEST_SUM * size:
            return Weights(weights / size, Move.FALLBACK)
        return Weights(weights / weights.sum(), Move.COMBINED)
