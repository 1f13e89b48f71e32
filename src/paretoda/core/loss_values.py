"""Checks of the losses that schemes with a state use: finite, positive, and as many as the state has."""

from __future__ import annotations

import numpy as np

from paretoda.core.problem import SMALLEST_LOSS, ProblemError, Vector


def check_size(scheme: str, remembered: int, size: int) -> None:
    """Raise unless the number of objectives is the one that the state was made for.

    Raises:
        ValueError: The numbers differ.
    """
    if remembered != size:
        raise ValueError(
            f"{scheme} remembers {remembered} objectives but was given {size}: "
            "take a fresh scheme when the objectives change"
        )


def positive_losses(losses: Vector) -> Vector:
    """The losses, shape (m,), raised to 1e-8 as in `Problem`.

    Raises:
        ProblemError: The shape is wrong, or a loss is not finite.
    """
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 1 or not losses.size:
        raise ProblemError(f"losses must have shape (m,) with m >= 1, got {losses.shape}")
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        raise ProblemError(f"losses[{bad[0]}] is {losses[bad[0]]}: every entry must be finite")
    return np.maximum(losses, SMALLEST_LOSS)
