"""Aligned-MTL: mean of the nearest gradients that are orthogonal and of one length (Senushkin et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from paretoda.core.problem import Matrix, Move, Problem, Weights
from paretoda.core.simplex import equal

Scale: TypeAlias = Literal["min", "median", "rmse"]

_RANK = 1e-12
"""Smallest eigenvalue that counts as non-zero, relative to the largest."""


def alignment(gram: Matrix, scale: Scale = "min") -> Matrix:
    """The B for which the gradients BᵀG are orthogonal with one common squared norm, within the span of the originals.

    Args:
        gram: Gram matrix A, shape (m, m), not all zero.
        scale: Common squared norm: the smallest, the (lower) median or the mean eigenvalue of A, zeros left out.

    Returns:
        B, shape (m, m), symmetric.
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    common = {"min": values[0], "median": values[(len(values) - 1) // 2], "rmse": values.mean()}[scale]
    balanced: Matrix = (vectors * np.sqrt(common / values)) @ vectors.T
    return balanced


@dataclass(frozen=True)
class AlignedMTL:
    """Mean of the aligned gradients; equal weights, reported as fallback, if every gradient is zero.

    Args:
        scale: Eigenvalue that gives their common length: "min", "median" or "rmse".

    Raises:
        ValueError: The scale is unknown.

    Examples:
        >>> AlignedMTL()(Problem([[1.0, 0.0], [0.0, 4.0]], [1.0, 1.0])).alpha.round(4)
        array([0.5 , 0.25])
    """

    scale: Scale = "min"
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise ValueError(f"scale must be one of {', '.join(get_args(Scale))}, got {self.scale!r}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        if not np.diagonal(problem.gram).any():
            return Weights(equal(problem.size), Move.FALLBACK)
        return Weights(alignment(problem.gram, self.scale).mean(axis=1), Move.COMBINED)
