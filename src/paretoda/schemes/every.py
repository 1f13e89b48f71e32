"""Weights that are computed at every k-th step and held in between: most steps then cost one ordinary backward pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from paretoda.core.problem import AheadScheme, Move, Problem, Scheme, StatefulScheme, Vector, Weights, reads_guide


@dataclass(frozen=True)
class Every:
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
    def refreshes(self) -> bool:
        """Whether the next step calls the wrapped scheme; only then a guide is needed."""
        return int(self._memory.get("held", 0)) % self.every == 0

    def __call__(self, problem: Problem, /) -> Weights:
        """Return new weights, whatever the step."""
        weights = self.scheme(problem)
        self._memory.update(alpha=weights.alpha.tolist(), held=1)
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
        return Weights(self._memory["alpha"], Move.HELD)

    def state_dict(self) -> dict[str, object]:
        """Return the held weights, their age, and the state of the wrapped scheme."""
        inner = self.scheme.state_dict() if isinstance(self.scheme, StatefulScheme) else {}
        return {**self._memory, "scheme": inner}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        own = dict(state)
        inner = cast("dict[str, object]", own.pop("scheme"))
        self._memory.clear()
        self._memory.update(own)
        if isinstance(self.scheme, StatefulScheme):
            self.scheme.load_state_dict(inner)
