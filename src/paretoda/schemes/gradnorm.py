"""GradNorm: weights learned until all objectives train at one rate (Chen et al., 2018)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import softmax

from paretoda.core.adam import Adam
from paretoda.core.loss_values import check_size
from paretoda.core.problem import SMALLEST_LOSS, Move, Problem, Vector, Weights

_ROUNDING = 1e-12


def gradnorm_slope(weights: Vector, norms: Vector, ratios: Vector, asymmetry: float) -> Vector:
    """Derivative by w of Σ |G_i - mean(G) r_i^asymmetry| / mean(G), with the means and rates r held fixed.

    Dividing by the mean makes the slope independent of the units of the losses.

    Args:
        weights: Weights w, shape (m,).
        norms: |g_i|, shape (m,); G_i = w_i |g_i|.
        ratios: L_i / L_i(0), shape (m,); r_i is the ratio over the mean ratio.
        asymmetry: Exponent that determines how strongly slow objectives are pulled back.

    Returns:
        Shape (m,); 0 for the objectives at their target.
    """
    lengths = weights * norms
    mean = lengths.mean()
    if not mean > 0:
        return np.zeros_like(weights)
    excess = lengths / mean - (ratios / ratios.mean()) ** asymmetry
    signs = np.where(np.abs(excess) > _ROUNDING, np.sign(excess), 0.0)
    return np.asarray(signs * norms / mean)


@dataclass(frozen=True)
class GradNorm:
    """Positive weights with sum m, moved at every step so that slower objectives get longer gradients.

    The weights are m softmax(s); s is learned with Adam. A step uses the weights that the steps before it have learned,
    so the first one is the plain sum. The norms are those of all voting parameters.

    Args:
        asymmetry: The paper's alpha; 0 asks for equal gradient norms.
        rate: Learning rate of s.

    Raises:
        ValueError: An argument is negative or infinite.

    Examples:
        >>> GradNorm()(Problem([[1.0, 0.0], [0.0, 4.0]], [1.0, 1.0])).alpha  # the first step is the plain sum
        array([0.5, 0.5])
    """

    asymmetry: float = 1.5
    rate: float = 0.025
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.asymmetry < np.inf:
            raise ValueError(f"asymmetry must be 0 or more, got {self.asymmetry}")
        if not 0 <= self.rate < np.inf:
            raise ValueError(f"rate must be 0 or more, got {self.rate}")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step and update the state."""
        size = problem.size
        first = np.array(self._memory.get("first", problem.values))
        check_size("GradNorm", len(first), size)
        first = np.where(first > SMALLEST_LOSS, first, problem.values)  # a loss may begin later
        logits: Adam = self._memory.get("logits") or Adam.start(0.0, size)
        alpha = softmax(logits.values)
        norms = np.sqrt(np.diagonal(problem.gram))
        slope = gradnorm_slope(size * alpha, norms, problem.values / first, self.asymmetry)
        logits = logits.step(size * alpha * (slope - alpha @ slope), self.rate)
        self._memory.update(first=first.tolist(), logits=logits)
        return Weights(alpha, Move.LEARNED)

    def state_dict(self) -> dict[str, object]:
        """Return the first losses and the learned s."""
        return {**self._memory, "logits": asdict(self._memory["logits"])} if self._memory else {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        if state:
            logits = Adam(**cast("dict[str, Any]", state["logits"]))
            self._memory.update(first=state["first"], logits=logits)
