"""Wrappers of schemes: inner products averaged over steps, and weights that are held for several steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paretoda.core.certificates import keeps_guarantee
from paretoda.core.memory import PlainMemory, WrapperMemory
from paretoda.core.problem import (
    AheadScheme,
    Guide,
    Move,
    Problem,
    Scheme,
    StatefulScheme,
    Vector,
    Weights,
    reads_guide,
    reads_values,
)


@dataclass(frozen=True)
class Averaged(PlainMemory):
    """The wrapped scheme on running averages of the Gram matrix, the guide's dots and the losses.

    If the averaged weights would let L_val and an objective rise in the present step, although the wrapped scheme's
    weights for the present problem would not, the latter are used for this step. Weights that are held for further
    steps are the averaged ones in any case.

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

    @property
    def valued(self) -> bool:
        """Whether the wrapped scheme reads loss values."""
        return reads_values(self.scheme)

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the wrapped scheme's weights for the averaged problem, unless the present one forbids them."""
        averaged = self.scheme(self._update(problem))
        if keeps_guarantee(problem, averaged.alpha):
            return averaged
        present = self.scheme(problem)
        lasting = averaged.alpha if averaged.lasting is None else averaged.lasting
        return replace(present, lasting=lasting) if keeps_guarantee(problem, present.alpha) else averaged

    def _update(self, problem: Problem) -> Problem:
        guide = problem.guide
        parts = {"gram": problem.gram, "losses": problem.losses}
        if guide is not None:
            parts |= {"dots": guide.dots, "square": np.array(guide.square), "loss": np.array(guide.loss)}
        weight = self.decay * self._memory.get("weight", 0.0) + 1.0
        means = {key: self._mean(key, value, weight) for key, value in parts.items()}
        self._memory.update({key: mean.tolist() for key, mean in means.items()}, weight=weight)
        mean_guide = guide and Guide(means["dots"], float(means["square"]), float(means["loss"]))
        return Problem(means["gram"], means["losses"], mean_guide, problem.roles, problem.offsets)

    def _mean(self, key: str, value: np.ndarray[Any, np.dtype[np.float64]], weight: float) -> Any:
        if key not in self._memory:
            return value
        before = np.array(self._memory[key])
        if before.shape != value.shape:
            raise ValueError(f"averaged: {key} had shape {before.shape} before and has {value.shape} now")
        return value if np.isinf(value).any() else before + (value - before) / weight


@dataclass(frozen=True)
class Every(WrapperMemory):
    """The wrapped scheme's weights, computed at steps 0, k, 2k, ... and held at the others.

    Args:
        scheme: Wrapped scheme.
        every: k; 1 computes them at every step.

    Raises:
        ValueError: k is below 1, or the scheme needs no gradients.

    Examples:
        >>> from paretoda.schemes import MGDA
        >>> scheme = Every(MGDA(), every=2)
        >>> scheme(Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])).move.value
        'descent'
        >>> scheme.ahead([1.0, 1.0]).move.value
        'held'
    """

    scheme: Scheme
    every: int = 5
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"every must be at least 1, got {self.every}")
        if isinstance(self.scheme, AheadScheme):
            raise ValueError(
                "every: this scheme needs no gradients, so there is nothing to save by holding its weights"
            )

    @property
    def guided(self) -> bool:
        """Whether the wrapped scheme reads the guide."""
        return reads_guide(self.scheme)

    @property
    def valued(self) -> bool:
        """Whether the wrapped scheme reads loss values."""
        return reads_values(self.scheme)

    @property
    def refreshes(self) -> bool:
        """Whether the next step calls the wrapped scheme; only then a guide is needed."""
        return int(self._memory.get("held", 0)) % self.every == 0

    def __call__(self, problem: Problem, /) -> Weights:
        """Return new weights, whatever the step."""
        weights = self.scheme(problem)
        units = None if weights.units is None else weights.units.tolist()
        lasting = weights.alpha if weights.lasting is None else weights.lasting
        self._memory.update(alpha=lasting.tolist(), units=units, held=1)
        return weights

    def ahead(self, losses: Vector, /) -> Weights | None:
        """Return the held weights, or None at a step that computes them anew.

        Raises:
            ValueError: The number of losses has changed.
        """
        if self.refreshes:
            return None
        if len(self._memory["alpha"]) != len(losses):
            raise ValueError(
                f"every: {len(self._memory['alpha'])} weights are held, but there are {len(losses)} losses"
            )
        self._memory["held"] += 1
        return Weights(self._memory["alpha"], Move.HELD, self._memory.get("units"))
