"""FAMO: the logarithms of all losses fall at one rate, from loss values alone (Liu et al., 2023)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import softmax

from paretoda.core.adam import Adam
from paretoda.core.loss_values import check_size, positive_losses
from paretoda.core.problem import SMALLEST_LOSS, Move, Problem, Vector, Weights
from paretoda.core.simplex import onto_simplex


def famo_slope(logits: Vector, before: Vector, after: Vector) -> Vector:
    """Jᵀδ, with J the Jacobian of softmax and δ the decrease of the logarithm of each loss.

    Going down this slope takes weight from the losses that fell most.

    Args:
        logits: ξ, shape (m,).
        before: Losses before a step, shape (m,), positive.
        after: Losses after it, shape (m,), positive.

    Returns:
        Shape (m,), with sum 0.
    """
    shares = np.asarray(softmax(logits))
    fall = np.log((before + SMALLEST_LOSS) / (after + SMALLEST_LOSS))
    return shares * (fall - shares @ fall)


@dataclass(frozen=True)
class FAMO:
    """Weights in proportion to softmax(ξ)_i / L_i, with sum 1; ξ is learned with Adam from the decrease of the losses.

    A loss that is 0 has no logarithm and, since it is never negative, no gradient: it is left out, with the weight 1/m.

    After a step, `observe` takes the losses of the same batch again. If it is not called, the losses of the next step
    are used instead, which costs nothing and adds the noise between two batches.

    Args:
        rate: Learning rate of ξ.
        decay: Pull of ξ towards 0, where the shares are equal.

    Raises:
        ValueError: An argument is negative or infinite.

    Examples:
        >>> FAMO().ahead(np.array([1.0, 4.0])).alpha.round(4)  # at first in proportion to 1 / L
        array([0.8, 0.2])
    """

    rate: float = 0.025
    decay: float = 1e-3
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("decay", self.decay)):
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be 0 or more, got {value}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step and update the state."""
        return self.ahead(problem.values)

    def ahead(self, losses: Vector, /) -> Weights:
        """Return the weights of this step from the losses alone and update the state."""
        losses = positive_losses(losses)
        if "before" in self._memory:
            self.observe(losses)
        logits: Adam = self._memory.setdefault("logits", Adam.start(0.0, len(losses)))
        check_size("FAMO", len(logits.values), len(losses))
        self._memory["before"] = losses.tolist()
        begun, alpha = losses > SMALLEST_LOSS, np.full(len(losses), 1 / len(losses))
        if begun.any():
            alpha[begun] = begun.mean() * onto_simplex((softmax(logits.values) / (losses + SMALLEST_LOSS))[begun])
        return Weights(alpha, Move.LEARNED)

    def observe(self, losses: Vector, /) -> None:
        """Learn from the losses of the same batch after the step, with their offsets, shape (m,); once per step.

        Raises:
            ValueError: There were no weights before, or `observe` was called twice.
        """
        losses = positive_losses(losses)
        if "before" not in self._memory:
            raise ValueError("FAMO has nothing to compare with: ask for weights first, then observe once")
        before = np.array(self._memory["before"])
        check_size("FAMO", len(before), len(losses))
        logits: Adam = self._memory["logits"]
        begun = (before > SMALLEST_LOSS) & (losses > SMALLEST_LOSS)
        before, losses = np.where(begun, before, 1.0), np.where(begun, losses, 1.0)
        slope = famo_slope(np.array(logits.values), before, losses)
        self._memory["logits"] = logits.step(slope, self.rate, self.decay)
        del self._memory["before"]

    def state_dict(self) -> dict[str, object]:
        """Return the learned ξ and the losses that wait for `observe`."""
        return {**self._memory, "logits": asdict(self._memory["logits"])} if self._memory else {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        if state:
            self._memory.update(state, logits=Adam(**cast("dict[str, Any]", state["logits"])))
