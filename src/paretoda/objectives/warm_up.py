"""The strength of an adversarial objective grows from 0 to 1 along a logistic curve (Ganin et al., 2016)."""

from __future__ import annotations

import math


def warm_up(progress: float) -> float:
    """2 / (1 + exp(-10 p)) - 1 of the share p of the training that is done.

    Args:
        progress: 0 at the first step, 1 at the end.
    """
    return math.tanh(5 * ramp(progress))


def ramp(progress: float) -> float:
    """The share p itself: growth in proportion.

    Args:
        progress: 0 at the first step, 1 at the end.
    """
    if not 0 <= progress <= 1:
        raise ValueError(f"progress is a share of the training and lies in 0..1, got {progress}")
    return progress
