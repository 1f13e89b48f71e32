"""Calibrated: every loss in a unit of its own, so that a constant factor on a loss changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paretoda.core.loss_values import check_size
from paretoda.core.memory import WrapperMemory
from paretoda.core.normalisation import rescale
from paretoda.core.problem import Problem, Scheme, Vector, Weights, reads_guide, reads_values

LENGTHS = {"source": 2.3, "alignment": 0.22, "target": 1.0, "propagation": 0.27, "labels": 0.23}
"""Length that the gradient of an objective of this role is given; 1 for any other.

They are the calibration norms of the default losses on two development tasks (PACS art to cartoon, SURF Amazon to
Caltech), so that calibration changes little on data like these: the factors are near 1 and learning rates keep their
meaning.
"""


@dataclass(frozen=True)
class Calibrated(WrapperMemory):
    """The wrapped scheme on losses that are divided by their calibration norms.

    The calibration norm of an objective is the root mean square of |g_i| over the first calls at which the scheme is
    asked for weights, counted from the one at which g_i is first not zero. Before these calls are complete, it is the
    root mean square of those so far; afterwards it stays as it is. Dividing by the present norm instead would amplify
    objectives that are nearly solved.

    The wrapped scheme sees the objectives L_i · length_i / norm_i. They do not change if a loss is multiplied by a
    positive number, and neither does the step: alpha and `Weights.units`, which the heads use, contain the factors. An
    objective whose gradient has always been zero has no unit yet and is left out, also of steps that weights are held
    for. Directions are not changed by the units, so the wrapped scheme's guarantees on them hold.

    Args:
        scheme: Wrapped scheme; it may itself be averaged over steps. To hold weights, wrap this in `Every`.
        calls: Number of calls that the norms are measured in.
        lengths: Length that each gradient is given, one number for each objective; empty: `LENGTHS` by role.

    Raises:
        ValueError: The number of calls is below 1, or a length is not positive.

    Examples:
        >>> from paretoda.schemes import Linear
        >>> for factor in (1.0, 10.0):  # of the second loss
        ...     gram = [[4.0, 0.0], [0.0, 25.0 * factor**2]]
        ...     Calibrated(Linear())(Problem(gram, [1.0, factor])).alpha
        array([0.25, 0.1 ])
        array([0.25, 0.01])
    """

    scheme: Scheme
    calls: int = 20
    lengths: tuple[float, ...] = ()
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.calls < 1:
            raise ValueError(f"calls must be at least 1, got {self.calls}")
        if any(not np.isfinite(length) or length <= 0 for length in self.lengths):
            raise ValueError(f"lengths must be positive numbers, got {self.lengths}")

    @property
    def guided(self) -> bool:
        """Whether the wrapped scheme reads the guide."""
        return reads_guide(self.scheme)

    @property
    def valued(self) -> bool:
        """Whether the wrapped scheme reads loss values."""
        return reads_values(self.scheme)

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the wrapped scheme's weights for the calibrated losses, as weights of the losses themselves.

        Raises:
            ValueError: The number of objectives has changed, or there is another number of lengths.
        """
        units = self._measure(problem)
        factors = np.where(units > 0, units, 1.0)
        offsets = tuple((factors * problem.offsets).tolist()) if problem.offsets else ()
        calibrated = replace(rescale(problem, 1 / factors), losses=factors * problem.losses, offsets=offsets)
        weights = self.scheme(calibrated)
        inner = units if weights.units is None else units * weights.units
        lasting = None if weights.lasting is None else units * weights.lasting
        return Weights(units * weights.alpha, weights.move, inner, lasting)

    def _measure(self, problem: Problem) -> Vector:
        """Return the factor of each loss, after adding the present gradients to the norms that are not complete.

        It is 0 for a loss whose gradient has always been zero.
        """
        size, squares = problem.size, np.diagonal(problem.gram)
        counts = np.array(self._memory.get("counts", [0] * size))
        means = np.array(self._memory.get("means", [0.0] * size))
        check_size("Calibrated", len(means), size)
        lengths = np.array(self.lengths or _by_role(problem))
        if len(lengths) != size:
            raise ValueError(f"lengths has {len(lengths)} numbers for {size} objectives")
        measured = (counts < self.calls) & ((counts > 0) | (squares > 0))
        counts = counts + measured
        means = np.where(measured, means + (squares - means) / np.maximum(counts, 1), means)
        self._memory.update(counts=counts.tolist(), means=means.tolist())
        units: Vector = np.divide(lengths, np.sqrt(means), out=np.zeros(size), where=means > 0)
        return units


def _by_role(problem: Problem) -> list[float]:
    """The default lengths; 1 for all objectives without roles."""
    return [LENGTHS.get(role, 1.0) for role in problem.roles] or [1.0] * problem.size
