"""The optimiser moves once: after clipping, and in float16 by what its gradient scaler allows."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from paretoda.gradients import NonFiniteError, Report

_SMALLEST_SCALE = 1.0
"""Below it nothing is scaled up any more, so that what is not finite there is no overflow of the scaling."""


class ExhaustedScaleError(NonFiniteError):
    """Gradients in float16 are not finite at any scale."""


def move(
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
