"""Descent direction nearest to a wanted one: a projection onto a cone, by non-negative least squares."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from paretoda.core.normalisation import directions
from paretoda.core.problem import Matrix, Vector
from paretoda.core.simplex import equal

_FLOOR = 1e-12
"""Lower bound of the eigenvalues of the cosines, so that collinear gradients stay solvable."""


def nearest_descent(gram: Matrix, dots: Vector | None = None, wanted: Vector | None = None) -> Vector:
    """The alpha >= 0 whose direction Gα is nearest to the wanted one, among those along which nothing rises.

    min |Gα - Gw|² subject to α >= 0, Aα >= 0 and, where a guide is given, b·α >= 0. In unit gradients, β = Dα and
    x = Fβ, all constraints are half-spaces through 0, and by Moreau's decomposition the projection of x₀ onto that cone
    is what non-negative least squares leaves over: x = x₀ + Σ μ_c c, μ >= 0, of smallest length.

    Args:
        gram: Gram matrix A, shape (m, m).
        dots: b = <g_i, g_v>, shape (m,), or None.
        wanted: Wanted weights w >= 0, shape (m,); None: equal weights, the mean gradient.

    Returns:
        alpha, shape (m,), not on the simplex in general; a zero gradient keeps its wanted weight.

    Examples:
        >>> nearest_descent(np.array([[1.0, 0.0], [0.0, 1.0]]))  # no conflict: the mean gradient
        array([0.5, 0.5])
    """
    alpha = equal(len(gram)) if wanted is None else wanted.copy()
    present = np.flatnonzero(np.diagonal(gram) > 0)
    if not len(present):
        return alpha
    parts = directions(gram[np.ix_(present, present)])
    values, vectors = np.linalg.eigh(parts.cosines)
    root = np.sqrt(np.maximum(values, _FLOOR))
    unit = root[:, None] * vectors.T  # F: columns are the unit gradients
    dual = vectors.T / root[:, None]  # F⁻ᵀ: column i is the normal of β_i >= 0
    normals = [dual / np.linalg.norm(dual, axis=0), unit]
    if dots is not None:
        lengths = np.sqrt(np.diagonal(gram)[present])
        guide = dual @ (dots[present] / lengths)
        length = np.linalg.norm(guide)
        normals.append(guide[:, None] / length if length > 0 else guide[:, None])
    start = unit @ (parts.norms * alpha[present])
    pushes, _ = nnls(np.hstack(normals), -start)
    found = start + np.hstack(normals) @ pushes
    beta = dual.T @ found
    alpha[present] = np.maximum(beta / parts.norms, 0.0)
    return alpha
