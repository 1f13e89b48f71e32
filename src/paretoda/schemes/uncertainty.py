"""Uncertainty weighting: each loss over a learned variance (Kendall, Gal and Cipolla, 2018)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from paretoda.core.adam import Adam
from paretoda.core.loss_values import check_size, positive_losses
from paretoda.core.problem import SMALLEST_LOSS, Move, Problem, Vector, Weights


def uncertainty_slope(log_variances: Vector, losses: Vector) -> Vector:
    """Derivative by s of Σ e^(-s_i) L_i + s_i, twice the paper's loss: zero where e^(s_i) = L_i.

    Args:
        log_variances: s, shape (m,).
        losses: L, shape (m,), positive, because otherwise s diverges to minus infinity.

    Returns:
        Shape (m,).
    """
    return 1 - np.exp(-log_variances) * losses


@dataclass(frozen=True)
class Uncertainty:
    """Weights e^(-s_i), where s_i = log σ_i² is learned with Adam beside the network.

    A step uses what the steps before it have learned. The loss is twice the paper's, so that s = 0 is the plain sum.

    Args:
        rate: Learning rate of s.
        start: s at the first step.

    Raises:
        ValueError: An argument is out of its range.

    Examples:
        >>> Uncertainty().ahead(np.array([0.7, 0.2])).alpha  # the first step is the plain sum
        array([0.5, 0.5])
    """

    rate: float = 0.025
    start: float = 0.0
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.rate < np.inf:
            raise ValueError(f"rate must be 0 or more, got {self.rate}")
        if not abs(self.start) <= 100:
            raise ValueError(f"start must lie between -100 and 100, got {self.start}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step and update the state."""
        return self.ahead(problem.values)

    def ahead(self, losses: Vector, /) -> Weights:
        """Return the weights of this step from the losses alone and update the state."""
        losses = positive_losses(losses)
        learned: Adam = self._memory.get("log_variances") or Adam.start(self.start, len(losses))
        check_size("Uncertainty", len(learned.values), len(losses))
        log_variances = np.array(learned.values)
        slope = np.where(losses > SMALLEST_LOSS, uncertainty_slope(log_variances, losses), 0.0)  # 0: it has not begun
        self._memory["log_variances"] = learned.step(slope, self.rate)
        return Weights(np.exp(-log_variances) / len(losses), Move.LEARNED)

    def state_dict(self) -> dict[str, object]:
        """Return the learned s and its moments."""
        return {name: asdict(learned) for name, learned in self._memory.items()}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update({name: Adam(**cast("dict[str, Any]", learned)) for name, learned in state.items()})
