"""STCH: a smooth maximum of the logarithms of the losses, relative to a warm-up (Lin et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from paretoda.core.loss_values import check_size, positive_losses
from paretoda.core.memory import PlainMemory
from paretoda.core.problem import SMALLEST_LOSS, Move, Problem, Vector, Weights


def smooth_tchebycheff(losses: Vector, references: Vector, smoothing: float) -> Vector:
    """Derivative by L of μ log Σ exp(log(L_i / z_i) / μ), divided by its sum.

    Args:
        losses: L, shape (m,), positive.
        references: z, shape (m,), positive.
        smoothing: μ; towards 0 only the loss that is largest relative to its reference counts.

    Returns:
        Shape (m,), on the simplex: in proportion to (L_i / z_i)^(1/μ) / L_i.
    """
    return np.asarray(softmax(np.log(losses / references) / smoothing - np.log(losses)))


@dataclass(frozen=True)
class STCH(PlainMemory):
    """Weights of the smooth Tchebycheff function of the losses, with sum 1.

    The reference z_i of a loss is its mean over a warm-up, the first steps at which it is positive; until these are
    there it has the weight 1/m. The method takes logarithms: a loss that is 0 at a step counts as solved and has
    (nearly) no weight there. Where that is not what it means, as in adversarial alignments, the loss has an offset.

    Args:
        smoothing: μ, at most 1; at 1 the ratios of the weights are constant, 1 / z_i.
        warm_up: Number of steps whose mean is the reference.

    Raises:
        ValueError: An argument is out of its range.

    Examples:
        >>> scheme = STCH(smoothing=0.5, warm_up=1)
        >>> scheme.ahead(np.array([1.0, 2.0])).alpha  # the warm-up is the plain sum
        array([0.5, 0.5])
        >>> scheme.ahead(np.array([1.0, 0.5])).alpha.round(4)  # (L/z)²/L is 1 and 1/8
        array([0.8889, 0.1111])
    """

    smoothing: float = 0.5
    warm_up: int = 50
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1e-3 <= self.smoothing <= 1:
            raise ValueError(f"smoothing must lie between 0.001 and 1, got {self.smoothing}")
        if self.warm_up < 1:
            raise ValueError(f"warm_up must be at least 1, got {self.warm_up}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step and update the state."""
        return self.ahead(problem.values)

    def ahead(self, losses: Vector, /) -> Weights:
        """Return the weights of this step from the losses alone and update the state."""
        losses = positive_losses(losses)
        size = len(losses)
        counts = np.array(self._memory.get("counts", [0] * size))
        totals = np.array(self._memory.get("totals", [0.0] * size))
        check_size("STCH", len(totals), size)
        ready = counts == self.warm_up
        alpha = np.full(size, 1 / size)
        if ready.any():
            references = totals[ready] / self.warm_up
            alpha[ready] = smooth_tchebycheff(losses[ready], references, self.smoothing) * ready.mean()
        measured = ~ready & (losses > SMALLEST_LOSS)
        self._memory["counts"] = (counts + measured).tolist()
        self._memory["totals"] = (totals + measured * losses).tolist()
        return Weights(alpha, Move.LEARNED)
