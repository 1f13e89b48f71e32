"""Optimisers: several as one, gradient clipping and scaling, learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from paretoda.gradients import NonFiniteError, Report

_SMALLEST_SCALE = 1.0
"""Smallest gradient scale; non-finite gradients below it are no overflow of the scaling."""


def _without_compiler(method: Any) -> Any:
    """Return a method of torch's optimisers without the wrapper that imports torch's compiler, which takes a second."""
    return getattr(method, "__wrapped__", method)


class SGD(torch.optim.SGD):
    """torch's SGD; its first step does not wait for the import of torch's compiler.

    Examples:
        >>> weight = nn.Parameter(torch.ones(1))
        >>> optimiser = SGD([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimiser.step()
        >>> weight.item()
        0.5
    """

    add_param_group = _without_compiler(torch.optim.SGD.add_param_group)
    zero_grad = _without_compiler(torch.optim.SGD.zero_grad)
    state_dict = _without_compiler(torch.optim.SGD.state_dict)
    load_state_dict = _without_compiler(torch.optim.SGD.load_state_dict)
    step = torch.no_grad()(_without_compiler(torch.optim.SGD.step))


class OptimiserGroup(Optimizer):
    """Several optimisers as one: the parameter groups of all parts, each updated by its own part.

    Args:
        *parts: Optimisers of different parameters.
    """

    add_param_group = _without_compiler(Optimizer.add_param_group)
    zero_grad = _without_compiler(Optimizer.zero_grad)

    def __init__(self, *parts: Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters once.

        Args:
            closure: Not supported, because the parts would evaluate it at different points.

        Raises:
            ValueError: A closure is given.
        """
        if closure is not None:
            raise ValueError("several optimisers cannot share a closure")
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the parts' states."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the parts' states.

        Raises:
            ValueError: The number of parts differs.
        """
        states = state_dict["parts"]
        if len(states) != len(self.parts):
            raise ValueError(f"{len(states)} optimisers were saved, and here are {len(self.parts)}")
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


class ExhaustedScaleError(NonFiniteError):
    """Gradients in float16 are not finite at any scale."""


def move_parameters(
    optimiser: torch.optim.Optimizer,
    report: Report,
    clipped: Iterable[nn.Parameter],
    clip: float | None,
    scaler: torch.amp.GradScaler | None,
) -> None:
    """Let the optimiser step along the gradients that are filled in.

    Args:
        optimiser: Optimiser of all networks.
        report: Report of the gradients.
        clipped: Parameters whose gradient's norm is limited.
        clip: The limit; None means that there is none.
        scaler: Scaler for float16; it skips steps that are not finite and lowers its scale after each.

    Raises:
        ExhaustedScaleError: The gradients stay non-finite at the smallest scale.
    """
    if scaler is not None:
        scaler.unscale_(optimiser)
    if clip is not None:
        nn.utils.clip_grad_norm_(clipped, clip)
    if scaler is None:
        optimiser.step()
        return
    if report.finite:  # if its first step were skipped, a fused SGD would leave its momentum uninitialised
        scaler.step(optimiser)
    scaler.update()
    if not report.finite and scaler.get_scale() < _SMALLEST_SCALE:
        raise ExhaustedScaleError(
            "losses or gradients in float16 stay NaN or infinite however far their scale is lowered; "
            "take --precision bf16 or 32, or a lower --lr"
        )


def inverse_decay(progress: float, decay: float = 10.0) -> float:
    """(1 + γ p)^-0.75 at the share p of the training: DANN's schedule (Ganin et al., 2016), where γ is 10.

    Args:
        progress: 0 at the first step, 1 at the end.
        decay: γ; programs that count iterations use γ over the number of steps.

    >>> inverse_decay(0.0), round(inverse_decay(1.0), 3)
    (1.0, 0.166)
    """
    return float((1.0 + decay * progress) ** -0.75)


def constant_rate(progress: float, decay: float = 0.0) -> float:  # noqa: ARG001 - the shape of a schedule
    """1 throughout."""
    return 1.0


def polynomial_decay(progress: float, decay: float = 0.0) -> float:  # noqa: ARG001 - the shape of a schedule
    """(1 - p)^0.9 at the share p of the training: DeepLab's schedule."""
    return float((1.0 - progress) ** 0.9)


SCHEDULES = {"inverse": inverse_decay, "constant": constant_rate, "poly": polynomial_decay}


def set_learning_rates(optimiser: Optimizer, factor: float) -> None:
    """Set each group's learning rate to its initial one times the factor."""
    for group in optimiser.param_groups:
        group.setdefault("initial_lr", group["lr"])
        group["lr"] = group["initial_lr"] * factor
