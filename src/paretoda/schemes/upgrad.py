"""UPGrad: mean of the gradients, each first projected so that it raises no objective (Quinton and Rey, 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from paretoda.core.normalisation import directions
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


def upgrad(gram: Matrix, regularisation: float = 0.0) -> Vector:
    """Weights of the mean of the projected gradients; 1/m everywhere where nothing conflicts.

    The projection of g_i onto {d : <d, g_j> >= 0 for all j} is g_i + Σ z_j g_j, with the z >= 0 that make it shortest.

    Args:
        gram: Gram matrix A, shape (m, m).
        regularisation: Amount added to the diagonal, relative to the trace.

    Returns:
        w, shape (m,), with d = Σ w_i g_i; a zero gradient keeps 1/m.
    """
    size = len(gram)
    weights = equal(size)
    present = np.flatnonzero(np.diagonal(gram) > 0)
    if not len(present):
        return weights
    part = gram[np.ix_(present, present)] / np.diagonal(gram).max()
    parts = directions(part + regularisation * part.trace() * np.eye(len(part)))
    for own, norm in enumerate(parts.norms):
        pushes, _ = nnls(parts.factor, -parts.factor[:, own], maxiter=100 * size)
        weights[present] += pushes * (norm / parts.norms) / size
    return weights


@dataclass(frozen=True)
class UPGrad:
    """Mean of the gradients after each was projected onto the cone of directions that raise no objective.

    Args:
        regularisation: See `upgrad`. 0 keeps the guarantee up to rounding; more makes the weights change less from step
            to step and breaks the guarantee by as much (TorchJD's default is 1e-4).

    Raises:
        ValueError: The regularisation is negative or infinite.

    Examples:
        >>> UPGrad()(Problem([[1.0, -0.5], [-0.5, 1.0]], [1.0, 1.0])).alpha.round(4)
        array([0.75, 0.75])
    """

    regularisation: float = 0.0
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.regularisation < np.inf:
            raise ValueError(f"regularisation must be 0 or more, got {self.regularisation}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        move = Move.COMBINED if self.regularisation else Move.DESCENT
        return Weights(upgrad(problem.gram, self.regularisation), move)
