"""DWA: more weight for the losses that fell least over the last two periods (Liu, Johns and Davison, 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from paretoda.core.loss_values import check_size, positive_losses
from paretoda.core.memory import PlainMemory
from paretoda.core.problem import SMALLEST_LOSS, Move, Problem, Vector, Weights
from paretoda.core.simplex import equal


def dwa(newer: Vector, older: Vector, temperature: float) -> Vector:
    """Softmax of newer / older / temperature, times m: positive weights with sum m.

    A loss that has only just begun has not risen: its ratio is 1.

    Args:
        newer: Mean losses of the last period, shape (m,), positive.
        older: Mean losses of the period before it, shape (m,), positive.
        temperature: Temperature; the higher, the more equal the weights.

    Returns:
        w, shape (m,).
    """
    begun = older > 2 * SMALLEST_LOSS  # a mean of the smallest losses, rounded
    ratios = np.where(begun, newer / older, 1.0)
    return len(newer) * np.asarray(softmax(ratios / temperature))


@dataclass(frozen=True)
class DWA(PlainMemory):
    """Weights from the rates at which the losses fell; equal ones during the first two periods.

    Args:
        temperature: Temperature; the higher, the more equal the weights.
        window: Number of steps in a period.

    Raises:
        ValueError: An argument is out of its range.

    Examples:
        >>> scheme = DWA(window=1)
        >>> for losses in ([1.0, 1.0], [0.5, 1.0]):
        ...     _ = scheme.ahead(np.array(losses))
        >>> scheme.ahead(np.array([0.5, 1.0])).alpha.round(3)  # the second loss did not fall
        array([0.438, 0.562])
    """

    temperature: float = 2.0
    window: int = 25
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be positive, got {self.temperature}")
        if self.window < 1:
            raise ValueError(f"window must be at least 1, got {self.window}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step and update the state."""
        return self.ahead(problem.values)

    def ahead(self, losses: Vector, /) -> Weights:
        """Return the weights of this step from the losses alone and update the state."""
        losses = positive_losses(losses)
        total = np.array(self._memory.get("total", [0.0] * len(losses)))
        check_size("DWA", len(total), len(losses))
        count, means = self._memory.get("count", 0), self._memory.get("means", [])
        if len(means) == 2:
            alpha = dwa(np.array(means[1]), np.array(means[0]), self.temperature) / len(losses)
        else:
            alpha = equal(len(losses))
        total, count = total + losses, count + 1
        if count == self.window:
            means, total, count = [*means, (total / count).tolist()][-2:], np.zeros_like(total), 0
        self._memory.update(total=total.tolist(), count=count, means=means)
        return Weights(alpha, Move.LEARNED)
