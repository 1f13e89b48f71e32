"""Gram matrices as lengths and angles, and objectives measured in other units: relative accuracy at any scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from paretoda.core.problem import Matrix, Problem, Vector
from paretoda.core.simplex import onto_simplex

Normalise: TypeAlias = Literal["none", "l2", "loss", "loss+"]


@dataclass(frozen=True, eq=False)
class Directions:
    """A = D R D with the norms D and the cosines R, and a factor of R.

    Args:
        norms: |g_i| relative to the longest gradient, shape (m,).
        cosines: R, shape (m, m), 1 on the diagonal; a zero gradient has cosine 0 with the others.
        factor: Matrix F with FᵀF = R up to rounding, shape (m, m): column i is a unit vector in place of g_i / |g_i|.
    """

    norms: Vector
    cosines: Matrix
    factor: Matrix


def gradient_norms(gram: Matrix) -> Vector:
    """Norms |g_i|, shape (m,); a diagonal that rounding made negative counts as zero."""
    return np.sqrt(np.maximum(np.diagonal(gram), 0.0))


def cosines(gram: Matrix) -> Matrix:
    """<g_i, g_j> / |g_i| |g_j|, 1 on the diagonal, 0 beside a zero gradient."""
    norms = gradient_norms(gram)
    safe = np.where(norms > 0, norms, 1.0)
    result: Matrix = np.clip(gram / safe[:, None] / safe[None, :], -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return result


def directions(gram: Matrix) -> Directions:
    """Lengths, cosines and a factor of the cosines (by eigenvalues, with negative rounding errors set to 0)."""
    norms = gradient_norms(gram)
    longest = norms.max()
    angles = cosines(gram)
    values, vectors = np.linalg.eigh(angles)
    factor: Matrix = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return Directions(norms / longest if longest > 0 else norms, angles, factor)


def scale_factors(problem: Problem, by: Normalise) -> Vector:
    """Divisor of each gradient: 1, its norm, its loss, or their product; 1 for a zero gradient.

    Raises:
        ValueError: The normalisation is unknown.
    """
    norms = np.sqrt(np.diagonal(problem.gram))
    factors = {
        "none": np.ones(problem.size),
        "l2": norms,
        "loss": problem.values,
        "loss+": norms * problem.values,
    }
    if by not in factors:
        raise ValueError(f"normalise must be one of {', '.join(factors)}, got {by!r}")
    return np.where(factors[by] > 0, factors[by], 1.0)


def rescale(problem: Problem, by: Vector) -> Problem:
    """Return the problem of the gradients g_i / by_i."""
    guide = problem.guide and replace(problem.guide, dots=problem.guide.dots / by)
    return replace(problem, gram=problem.gram / by[:, None] / by[None, :], guide=guide)


def undo_scaling(weights: Vector, by: Vector) -> Vector:
    """Return simplex weights for g_i along the direction that `weights` give for g_i / by_i."""
    return onto_simplex(weights / by)
