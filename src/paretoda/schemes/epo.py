"""EPO: exact Pareto optimal search for a preference vector (Mahapatra and Rajan, 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.linear_program import maximise
from paretoda.core.min_norm import min_norm
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


def non_uniformity(losses: Vector, preference: Vector) -> tuple[float, Vector]:
    """Distance of the losses from the ray r_1 L_1 = ... = r_m L_m, and the direction that leads there.

    Returns:
        μ = KL(L̂ | 1/m) of the shares L̂_j = r_j L_j / Σ r_i L_i, and a_j = r_j (log(m L̂_j) - μ), along which μ falls
        (its gradient up to the factor 1 / Σ r_i L_i); a·L = 0.
    """
    shares = preference * losses / (preference @ losses)
    logs = np.log(len(losses) * shares)
    distance = float(shares @ logs)
    return distance, preference * (logs - distance)


@dataclass(frozen=True)
class EPO:
    """Reach the point of the front on the ray r_1 L_1 = ... = r_m L_m, also where the front is concave.

    Far from the ray (μ > threshold): max b·w over the simplex with b = Aa, where objectives that fall with the balance
    are free, those that rise with it may rise no faster, and the largest r_j L_j must not rise. On the ray: max 1ᵀAw
    with no objective rising and, restricted, b·w >= min(max b, 0), which keeps to the ray. The restricted programme can
    be infeasible; then the preference itself is the solution, counted as a fallback.

    Args:
        preference: r, one positive number per loss; empty: all equal. A larger r_j asks for a smaller L_j.
        restricted: Keep to the ray in descent; False is the paper's relaxed form.
        threshold: ε, the μ below which the losses count as balanced.

    Raises:
        ValueError: A preference is not positive.

    Examples:
        >>> EPO()(Problem([[1.0, 0.0], [0.0, 1.0]], [2.0, 0.5])).alpha  # lower the larger loss first
        array([1., 0.])
    """

    preference: tuple[float, ...] = ()
    restricted: bool = True
    threshold: float = 1e-4
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not all(np.isfinite(r) and r > 0 for r in self.preference):
            raise ValueError(f"preference must be positive, got {self.preference}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of the balancing or of the descending programme."""
        preference = np.array(self.preference) if self.preference else np.ones(problem.size)
        if len(preference) != problem.size:
            raise ValueError(f"epo has {len(preference)} preferences for {problem.size} losses")
        distance, anchor = non_uniformity(problem.values, preference)
        balance = problem.gram @ anchor
        if distance > self.threshold:
            return _towards_ray(problem.gram, balance, preference * problem.values)
        return self._along_ray(problem.gram, balance, preference)

    def _along_ray(self, gram: Matrix, balance: Vector, preference: Vector) -> Weights:
        rows, bounds = gram, np.zeros(len(gram))
        if self.restricted:
            rows, bounds = np.vstack([gram, balance]), np.append(bounds, min(balance.max(), 0.0))
        weights = maximise(gram.sum(axis=0), rows, bounds)
        if weights is not None:
            return Weights(weights, Move.DESCENT)
        if self.restricted:
            return Weights(preference / preference.sum(), Move.FALLBACK)
        return Weights(min_norm(gram), Move.SAFETY_NET)


def _towards_ray(gram: Matrix, balance: Vector, shares: Vector) -> Weights:
    bounds = np.zeros(len(gram))
    if (balance > 0).any():
        bounds = np.where(balance > 0, -np.inf, balance)
        bounds[shares == shares.max()] = 0.0
    weights = maximise(balance, gram, bounds)
    if weights is None:
        return Weights(min_norm(gram), Move.SAFETY_NET)
    return Weights(weights if gram.any() else equal(len(gram)), Move.BALANCE)
