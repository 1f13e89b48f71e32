"""Gradient harmonisation, GH and GH++: source and alignment give way where they conflict (Huang et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


def harmonise(gram: Matrix) -> Vector:
    """GH: 1 - <g_1, g_2> / |g_i|² where the two gradients conflict, 1 elsewhere.

    Each gradient is projected on the normal plane of the other, so that the sum is that of PCGrad for two objectives.

    Args:
        gram: Gram matrix of the two gradients, shape (2, 2).

    Returns:
        Weights of the two gradients in their sum, shape (2,).
    """
    product = gram[0, 1]
    squares = np.diagonal(gram)
    if product >= 0 or not squares.all():
        return np.ones(2)
    return np.asarray(1 - product / squares)


def harmonise_by_angle(gram: Matrix, share: float) -> Vector:
    """GH++: 1 + 2 sin((β + 90° - θ) / 2) for the source, 1 + 2 sin(β / 2) for the alignment, where θ > 90°.

    θ is the angle of the two gradients, and β = share (θ - 90°).

    Args:
        gram: Gram matrix of source and alignment, shape (2, 2).
        share: Share of the excess angle, 0..1, that strengthens the alignment; the rest weakens the source.

    Returns:
        Weights of source and alignment in their sum, shape (2,); the source's lies between 1 - √2 and 1.
    """
    cosine = cosines(gram)[0, 1]
    if cosine >= 0:
        return np.ones(2)
    excess = np.arccos(cosine) - np.pi / 2
    return np.asarray(1 + 2 * np.sin(np.array([share - 1, share]) * excess / 2))


@dataclass(frozen=True)
class GradientHarmonisation:
    """The sum of the gradients, with other weights for source and alignment where these two conflict.

    The method is defined for two objectives: those with the roles "source" and "alignment", or the first two if the
    problem does not have these roles. All other objectives keep the weight 1, and their conflicts are not looked at.

    Args:
        plus: Whether the weights are those of GH++; False: those of GH.
        share: λ of GH++, 0..1. If it is small, the source's weight becomes negative for gradients that are nearly
            opposite (at 0 from 150° on, at 0.5 never).

    Raises:
        ValueError: The share does not lie in [0, 1].

    Examples:
        >>> problem = Problem([[1.0, -0.5], [-0.5, 1.0]], [1.0, 1.0])  # 120°
        >>> GradientHarmonisation()(problem).alpha.round(4)  # (1 ± 2 sin 7.5°) / 2
        array([0.3695, 0.6305])
        >>> GradientHarmonisation(plus=False)(problem).alpha
        array([0.75, 0.75])
    """

    plus: bool = True
    share: float = 0.5
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie between 0 and 1, got {self.share}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        weights = equal(problem.size)
        if problem.size > 1:
            pair = _find_pair(problem.roles)
            part = problem.gram[np.ix_(pair, pair)]
            weights[pair] *= harmonise_by_angle(part, self.share) if self.plus else harmonise(part)
        return Weights(weights, Move.COMBINED)


def _find_pair(roles: tuple[str, ...]) -> list[int]:
    """Return the positions of source and alignment."""
    named = {"source", "alignment"} <= set(roles)
    return [roles.index("source"), roles.index("alignment")] if named else [0, 1]
