"""FairGrad: every objective gains in the proportion that alpha-fairness asks for (Ban and Ji, 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal, onto_simplex

_CAP = 1e5
"""Size of a weight, relative to that of the gradient alone, from which on a ridge bounds it: where gradients cancel."""
_SOLVED = 1e-6
"""Largest relative error of an equation that counts as solved."""
_ROUNDING = 1e-14
_STEPS = 500


def share(angles: Matrix, rates: Vector, fairness: float) -> Vector:
    """The x > 0 with Σ_j R_ij r_j x_j + r_i x_i / cap² = r_i x_i^(-1/fairness): the minimum of a convex function.

    The function is xᵀ(rRr)x / 2 + |rx|² / 2cap² - Σ r_i² ∫ x_i^(-1/fairness). Newton steps in y = rx, shortened until
    it falls, converge from anywhere, because its slope at 0 is minus infinity; `polish` adds the last digits.

    Args:
        angles: Cosines R, shape (m, m).
        rates: r, shape (m,), positive.
        fairness: Exponent of alpha-fairness.

    Returns:
        x, shape (m,): 1 everywhere where the gradients are orthogonal and the cap is infinite.
    """
    hessian = angles + np.eye(len(angles)) / _CAP**2
    power = 1 - 1 / fairness

    def height(scaled: Vector) -> float:
        ratio = scaled / rates
        gains = np.log(ratio) if fairness == 1 else ratio**power / power
        return float(scaled @ hessian @ scaled / 2 - rates**2 @ gains)

    found = rates.copy()
    for _ in range(_STEPS):
        pull = rates * (found / rates) ** (-1 / fairness)
        slope = hessian @ found - pull
        move = -np.linalg.solve(hessian + np.diag(pull / found / fairness), slope)
        room = (-0.99 * found / np.where(move < 0, move, -np.inf))[move < 0]
        step, fall, here = min(1.0, room.min(initial=1.0)), float(slope @ move), height(found)
        while height(found + step * move) > here + 0.1 * step * fall and step > _ROUNDING:
            step /= 2
        if step <= _ROUNDING or -fall <= _ROUNDING * abs(here):  # the heights differ by rounding only
            break
        found = found + step * move
    return polish(hessian, rates, found, fairness) / rates


def polish(hessian: Matrix, rates: Vector, start: Vector, fairness: float) -> Vector:
    """Newton steps in log y for every equation relative to its own size, as long as the worst of them improves.

    Args:
        hessian: H, shape (m, m), of the equations Hy = r (y / r)^(-1/fairness).
        rates: r, shape (m,), positive.
        start: y at first, shape (m,), positive.
        fairness: Exponent of alpha-fairness.

    Returns:
        y, shape (m,), positive.
    """
    best, found, last = start, start, np.inf
    for _ in range(_STEPS):
        pull = rates * (found / rates) ** (-1 / fairness)
        excess = hessian @ found / pull - 1
        if not np.abs(excess).max() < last:
            break
        best, last = found, np.abs(excess).max()
        slopes = hessian * found / pull[:, None] + np.eye(len(found)) / fairness
        found = found * np.exp(np.clip(-np.linalg.solve(slopes, excess), -1, 1))
    return best


def fair(gram: Matrix, fairness: float) -> Vector:
    """The w > 0 with Aw = w^(-1/fairness).

    Solved relative to v_i = |g_i|^(-2 fairness / (1 + fairness)), the weight that each gradient would have alone.

    Args:
        gram: Gram matrix A, shape (m, m).
        fairness: Exponent of alpha-fairness: 1 is proportional fairness (Nash-MTL), larger ones favour the worst-off.

    Returns:
        w, shape (m,); 0 for zero gradients.
    """
    weights = np.zeros(len(gram))
    present = np.flatnonzero(np.diagonal(gram) > 0)
    part = gram[np.ix_(present, present)]
    squares = np.diagonal(part)
    alone = squares ** (-fairness / (1 + fairness))
    rates = np.sqrt(squares) * alone
    weights[present] = alone * share(cosines(part), rates / rates.max(), fairness) if len(present) else 0.0
    return weights


@dataclass(frozen=True)
class FairGrad:
    """The weights with Aw = w^(-1/fairness), divided by their sum.

    Where the gradients cancel, no weights solve the equation and a cap bounds them; zero gradients are left out; where
    all are zero, the weights are equal. All three are reported as fallback.

    Args:
        fairness: Exponent of alpha-fairness (alpha of the paper): towards 0 the plain sum, 1 proportional fairness
            (the direction of Nash-MTL), 2 the smallest potential delay, larger ones favour the worst-off objective.
        normalise: Whether the weights are divided by their sum; False keeps the paper's own length, which grows as the
            gradients vanish if the fairness is larger than 1.

    Raises:
        ValueError: The fairness is out of its range.

    Examples:
        >>> FairGrad()(Problem([[1.0, 0.0], [0.0, 8.0]], [1.0, 1.0])).alpha.round(4)  # in proportion to |g_i|^(-4/3)
        array([0.8, 0.2])
    """

    fairness: float = 2.0
    normalise: bool = True
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.1 <= self.fairness <= 100:
            raise ValueError(f"fairness must lie between 0.1 and 100, got {self.fairness}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        squares = np.diagonal(problem.gram)
        longest = squares.max()
        if longest == 0:
            return Weights(equal(problem.size), Move.FALLBACK)
        weights = fair(problem.gram / longest, self.fairness)
        gains = problem.gram / longest @ weights
        solved = np.abs(gains * weights ** (1 / self.fairness) - 1).max() <= _SOLVED
        if self.normalise:
            weights = onto_simplex(weights)
        else:
            weights = weights * longest ** (-self.fairness / (1 + self.fairness)) / problem.size
        return Weights(weights, Move.COMBINED if solved else Move.FALLBACK)
