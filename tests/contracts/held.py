"""What is a constant in a formula stays one: the record of a first look is played back at every other point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Held(TorchFunctionMode):
    """Calls whose results carry no gradient: recorded at the first look, returned again at the others.

    Detached parts, pseudo-labels, teachers, masks and draws are then the same wherever the function is looked at, and
    what is left is the formula that a gradient must be the gradient of.

    Args:
        recorded: of the first look; None: this is it.
    """

    def __init__(self, recorded: list[Any] | None = None) -> None:
        super().__init__()
        self.recorded: list[Any] = [] if recorded is None else recorded
        self._first, self._place = recorded is None, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place, self._place = self._place, self._place + 1
        name = getattr(func, "__name__", "")
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or "out" in (kwargs or {})
        if not self._first and self.recorded[place] is not None:
            return _copied(self.recorded[place])
        found = func(*args, **(kwargs or {}))
        if self._first:
            self.recorded.append(_copied(found) if not in_place and _constant(found) else None)
        return found


def _constant(value: Any) -> bool:
    tensors = [value] if isinstance(value, Tensor) else list(value) if isinstance(value, (tuple, list)) else []
    return bool(tensors) and all(isinstance(tensor, Tensor) and not tensor.requires_grad for tensor in tensors)


def _copied(value: Any) -> Any:
    with torch._C.DisableTorchFunction():
        if isinstance(value, Tensor):
            return value.detach().clone()
        parts = [_copied(part) for part in value]
        return type(value)(parts) if type(value) in (tuple, list) else type(value)(tuple(parts))


Function = Callable[[Sequence[Tensor]], Tensor]


def slopes(function: Function, at: Sequence[Tensor], along: Sequence[Tensor]) -> tuple[float, float, float]:
    """The derivative along a direction: by autograd, of the formula with its constants held, and of the bare value.

    The last two are central differences.

    Args:
        function: of leaves, to a scalar.
        at: where.
        along: the direction.
    """

    def value(size: float, mode: Held) -> tuple[Tensor, list[Tensor]]:
        leaves = [(x + size * d).detach().requires_grad_() for x, d in zip(at, along, strict=True)]
        torch.manual_seed(0)
        with mode:
            return function(leaves), leaves

    first = Held()
    loss, leaves = value(0.0, first)
    found = torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None] * len(leaves)
    slope = sum(float((g * d).sum()) for g, d in zip(found, along, strict=True) if g is not None)

    def difference(recorded: list[Any] | None) -> float:
        # A kink within reach of a long step is out of a short one's, which rounding harms more.
        for h in (1e-6, 1e-8):
            ahead, behind = (value(size, Held(recorded))[0].item() for size in (h, -h))
            found = (ahead - behind) / (2 * h)
            if abs(found - slope) <= 1e-5 * abs(slope) + 1e-8:
                break
        return found

    return slope, difference(first.recorded), difference(None)
