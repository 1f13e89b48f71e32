"""The exact min-norm point of the convex hull of the gradients (Désidéri, 2012), for any number of them."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from paretoda.core.normalisation import directions
from paretoda.core.problem import Matrix, Vector
from paretoda.core.simplex import onto_simplex


def min_norm(gram: Matrix) -> Vector:
    """The w on the simplex that minimises wᵀAw.

    The non-negative least-squares problem min wᵀAw + (Σw - 1)² has, by homogeneity, its solution on the same ray: along
    w = t v with Σv = 1 the best value is q / (1 + q) with q = vᵀAv, which grows with q. The active set of Lawson and
    Hanson solves it exactly. The unknowns are u = D w, scaled by the norms D, so that gradients of length 1e-8 and 1e8
    can meet.

    Args:
        gram: Inner products of the gradients, shape (m, m).

    Returns:
        The weights, shape (m,). Zero gradients share the whole weight.

    Examples:
        >>> np.round(min_norm(np.array([[1.0, 0.0], [0.0, 3.0]])), 4)  # the shorter gradient gets more weight
        array([0.75, 0.25])
    """
    parts = directions(gram)
    zero = parts.norms == 0
    if zero.any():
        shares: Vector = zero / zero.sum()
        return shares
    sums = parts.norms.min() / parts.norms
    wanted = np.zeros(len(gram) + 1)
    wanted[-1] = 1.0
    solution, _ = nnls(np.vstack([parts.factor, sums]), wanted)
    return onto_simplex(solution / parts.norms)
