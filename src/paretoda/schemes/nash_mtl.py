"""Nash-MTL: the bargaining solution, along which the product of all gains is largest (Navon et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


def bargain(angles: Matrix, cap: float) -> Vector:
    """The b > 0 with Rb + b / cap² = 1 / b: the minimum of bᵀRb / 2 + |b|² / 2cap² - Σ log b_i.

    The function is self-concordant: Newton steps divided by 1 + their own length stay positive and converge from
    anywhere. Without its second term, which keeps |b| <= cap √m, it is unbounded where the gradients cancel.

    Args:
        angles: Cosines R, shape (m, m).
        cap: Root mean square of b where the gradients cancel.

    Returns:
        b, shape (m,).
    """
    hessian = angles + np.eye(len(angles)) / cap**2
    found, last = np.ones(len(angles)), np.inf
    for _ in range(500):
        slope = hessian @ found - 1 / found
        move = -np.linalg.solve(hessian + np.diag(found**-2), slope)
        square = max(-float(slope @ move), 0.0)
        if square >= last:  # rounding, once the full steps converge
            break
        damped = square > 0.05
        found = found + (move / (1 + np.sqrt(square)) if damped else move)
        last = np.inf if damped else square
    return found


def nash(gram: Matrix, cap: float = 1e4) -> Vector:
    """The a > 0 with Aa = 1/a: each objective gains in proportion to the inverse of its weight.

    Solved over unit gradients, a_i = b_i / |g_i|, so that scaling one loss never changes the direction.

    Args:
        gram: Gram matrix A, shape (m, m).
        cap: Bound of the root mean square of a_i |g_i|, reached where the gradients cancel and have no finite solution.

    Returns:
        a, shape (m,); 0 for zero gradients.
    """
    weights = np.zeros(len(gram))
    present = np.flatnonzero(np.diagonal(gram) > 0)
    part = gram[np.ix_(present, present)]
    weights[present] = bargain(cosines(part), cap) / np.sqrt(np.diagonal(part))
    return weights


@dataclass(frozen=True)
class NashMTL:
    """The bargaining solution for the Gram matrix over its Frobenius norm, with a bound on the length of the step.

    Where the gradients cancel the weights stop at the cap, zero gradients are left out, and where all are zero the
    weights are equal: all three are reported as fallback. To solve at every k-th step only, wrap it in `Every`.

    Args:
        cap: Bound of the unit gradients' weights, in root mean square.
        max_norm: Bound of |m Σ alpha_i g_i|, the length of the step's gradient; None for no bound. Without one, scaling
            all gradients alike does not change the weights.

    Raises:
        ValueError: An argument is out of its range.

    Examples:
        >>> alpha = NashMTL()(Problem([[1.0, 0.0], [0.0, 4.0]], [1.0, 1.0])).alpha
        >>> (alpha / alpha.sum()).round(4)  # in proportion to 1 / |g_i|
        array([0.6667, 0.3333])
    """

    cap: float = 1e4
    max_norm: float | None = 1.0
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.cap <= 1e7:
            raise ValueError(f"cap must lie between 1 and 1e7, got {self.cap}")
        if self.max_norm is not None and not self.max_norm > 0:
            raise ValueError(f"max_norm must be positive, or None, got {self.max_norm}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        squares = np.diagonal(problem.gram)
        longest = squares.max()
        if longest == 0:
            return Weights(equal(problem.size), Move.FALLBACK)
        scaled = problem.gram / longest
        frobenius = np.linalg.norm(scaled)
        weights = nash(scaled / frobenius, self.cap)
        capped = (weights * np.sqrt(np.diagonal(scaled) / frobenius)).max() > self.cap / 2 or not squares.all()
        if self.max_norm is not None:
            length = np.sqrt(max(weights @ scaled @ weights, 0.0)) * np.sqrt(longest)
            weights = weights * min(1.0, self.max_norm / length) if length > 0 else weights
        return Weights(weights / problem.size, Move.FALLBACK if capped else Move.COMBINED)
