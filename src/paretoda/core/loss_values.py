"""The losses as a scheme with memory may use them: finite, positive, and as many as it remembers."""

from __future__ import annotations

import numpy as np

from paretoda.core.problem import SMALLEST_LOSS, ProblemError, Vector


def check_size(scheme: str, remembered: int, size: int) -> None:
    """Refuse to go on with another number of objectives than the memory was made for."""
    if remembered != size:
        raise ValueError(
            f"{scheme} remembers {remembered} objectives but was given {size}: "
            "take a fresh scheme when the objectives change"
        )


def positive_losses(losses: Vector) -> Vector:
    """The losses, shape (m,), raised to 1e-8 as in `Problem`."""
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 1 or not losses.size:
        raise ProblemError(f"losses must have shape (m,) with m >= 1, got {losses.shape}")
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        raise ProblemError(f"losses[{bad[0]}] is {losses[bad[0]]}: every entry must be finite")
    return np.maximum(losses, SMALLEST_LOSS)
