"""Objectives in other units: the same directions, other lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from paretoda.core.problem import Problem, Vector
from paretoda.core.simplex import onto_simplex

Normalise: TypeAlias = Literal["none", "l2", "loss", "loss+"]


def scale_factors(problem: Problem, by: Normalise) -> Vector:
    """Divisor of each gradient: 1, its norm, its loss, or their product; 1 for a zero gradient.

    Raises:
        ValueError: The normalisation is unknown.
    """
    norms = np.sqrt(np.diagonal(problem.gram))
    factors = {
        "none": np.ones(problem.size),
        "l2": norms,
        "loss": problem.losses,
        "loss+": norms * problem.losses,
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
