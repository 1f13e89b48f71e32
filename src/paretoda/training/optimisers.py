"""Optimisers: several as one, gradient clipping and scaling, learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from paretoda.gradients import NonFiniteError, Report


class OptimiserGroup(Optimizer):
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


_SMALLEST_SCALE = 1.0
"""Below it nothing is scaled up any more, so that what is not finite there is no overflow of the scaling."""


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
        optimiser: of all networks.
        report: of the gradients.
        clipped: parameters whose gradient's norm is limited.
        clip: the limit; None: there is none.
        scaler: for float16; leaves out steps that are not finite and lowers its scale after each.
    """
    if scaler is not None:
        scaler.unscale_(optimiser)
    if clip is not None:
        nn.utils.clip_grad_norm_(clipped, clip)
    if scaler is None:
        optimiser.step()
        return
    if report.finite:  # a fused SGD would leave its momentum uninitialised where its first step is skipped
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
        decay: γ; codes that count iterations have that share of it which one step is.
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
    """Multiply each group's first learning rate by the factor."""
    for group in optimiser.param_groups:
        group.setdefault("initial_lr", group["lr"])
        group["lr"] = group["initial_lr"] * factor
