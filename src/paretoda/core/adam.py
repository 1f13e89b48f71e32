"""Adam over a few numbers that a scheme learns beside the network (Kingma and Ba, 2015)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paretoda.core.problem import Vector

_MEMORY = 0.9, 0.999
_EPSILON = 1e-8


@dataclass(frozen=True)
class Adam:
    """Learned values with their running moments, as plain lists: `dataclasses.asdict` is the whole state.

    Args:
        values: Learned numbers, shape (m,).
        mean: Running mean of the slopes, shape (m,).
        square: Running mean of their squares, shape (m,).
        steps: Number of steps taken.

    Examples:
        >>> [round(value, 3) for value in Adam.start(0.0, size=2).step(np.array([1.0, -1.0]), rate=0.1).values]
        [-0.1, 0.1]
    """

    values: list[float]
    mean: list[float]
    square: list[float]
    steps: int = 0

    @classmethod
    def start(cls, value: float, size: int) -> Adam:
        """Return the state before the first step: `size` numbers, all equal to `value`."""
        return cls([value] * size, [0.0] * size, [0.0] * size)

    def step(self, slope: Vector, rate: float, decay: float = 0.0) -> Adam:
        """Return the state one step down the slope, shape (m,); `decay` pulls the values towards zero."""
        values = np.array(self.values)
        slope = slope + decay * values
        steps = self.steps + 1
        mean = _MEMORY[0] * np.array(self.mean) + (1 - _MEMORY[0]) * slope
        square = _MEMORY[1] * np.array(self.square) + (1 - _MEMORY[1]) * slope**2
        spread = np.sqrt(square / (1 - _MEMORY[1] ** steps)) + _EPSILON
        values = values - rate * (mean / (1 - _MEMORY[0] ** steps)) / spread
        return Adam(values.tolist(), mean.tolist(), square.tolist(), steps)
