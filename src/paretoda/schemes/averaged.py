"""Weights from inner products averaged over steps, which vary less than those of single batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paretoda.core.certificates import keeps_guarantee
from paretoda.core.problem import Guide, Problem, Scheme, StatefulScheme, Weights, reads_guide


@dataclass(frozen=True)
class Averaged:
    """The wrapped scheme on running averages of the Gram matrix, the guide's dots and the losses.

    If the averaged weights would let L_val and an objective rise in the present step, although the wrapped scheme's
    weights for the present problem would not, the latter are used.

    Args:
        scheme: Wrapped scheme, which must not have a state of its own.
        decay: Share of the past in each update; the first steps are corrected for their small number.

    Raises:
        ValueError: The decay does not lie in [0, 1), or the scheme has a state.

    Examples:
        >>> from paretoda.schemes import MGDA
        >>> scheme = Averaged(MGDA(), decay=0.5)
        >>> scheme(Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])).alpha.round(4)
        array([0.5, 0.5])
    """

    scheme: Scheme
    decay: float = 0.95
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ValueError(f"decay must lie in [0, 1), got {self.decay}")
        if isinstance(self.scheme, StatefulScheme):
            raise ValueError("averaged takes a scheme without memory; wrap it the other way round")

    @property
    def guided(self) -> bool:
        """Whether the wrapped scheme reads the guide."""
        return reads_guide(self.scheme)

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the wrapped scheme's weights for the averaged problem, unless the present one forbids them."""
        averaged = self.scheme(self._update(problem))
        if keeps_guarantee(problem, averaged.alpha):
            return averaged
        present = self.scheme(problem)
        return present if keeps_guarantee(problem, present.alpha) else averaged

    def _update(self, problem: Problem) -> Problem:
        guide = problem.guide
        parts = {"gram": problem.gram, "losses": problem.losses}
        if guide is not None:
            parts |= {"dots": guide.dots, "square": np.array(guide.square), "loss": np.array(guide.loss)}
        weight = self.decay * self._memory.get("weight", 0.0) + 1.0
        means = {key: self._mean(key, value, weight) for key, value in parts.items()}
        self._memory.update({key: mean.tolist() for key, mean in means.items()}, weight=weight)
        mean_guide = guide and Guide(means["dots"], float(means["square"]), float(means["loss"]))
        return Problem(means["gram"], means["losses"], mean_guide, problem.roles)

    def _mean(self, key: str, value: np.ndarray[Any, np.dtype[np.float64]], weight: float) -> Any:
        if key not in self._memory:
            return value
        before = np.array(self._memory[key])
        if before.shape != value.shape:
            raise ValueError(f"averaged: {key} had shape {before.shape} before and has {value.shape} now")
        return value if np.isinf(value).any() else before + (value - before) / weight

    def state_dict(self) -> dict[str, object]:
        """Return the averages and their weight."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)
