"""Several optimisers that a step moves as one: the network's and, with rules of their own, its adversaries'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer


class JoinedOptimiser(Optimizer):
    """All groups of its parts, each moved by its own part.

    Args:
        *parts: optimisers of different parameters.
    """

    def __init__(self, *parts: Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move everything once.

        Args:
            closure: not taken: parts would evaluate it at different points.
        """
        if closure is not None:
            raise ValueError("several optimisers cannot share a closure")
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """The parts' states."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Give the parts their states back."""
        states = state_dict["parts"]
        if len(states) != len(self.parts):
            raise ValueError(f"{len(states)} optimisers were saved, and here are {len(self.parts)}")
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
