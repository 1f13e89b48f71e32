"""Strength of a loss that waits for predictions it can trust: 0 at first, then growing, then full."""

from __future__ import annotations

from dataclasses import dataclass


def check_strength(strength: float) -> None:
    """Raise ValueError unless the full strength of an objective is positive."""
    if strength <= 0:
        raise ValueError(f"strength must be positive, got {strength}")


@dataclass(frozen=True)
class Growth:
    """Growth from 0 to 1 between two shares of the training.

    Args:
        start: Share of the training before which the strength is 0.
        full: Share of the training from which the strength is 1; it grows linearly from `start`.

    Raises:
        ValueError: The shares are not in 0..1, or not in this order.

    Examples:
        >>> growth = Growth(start=0.25, full=0.75)
        >>> growth(0.0), growth(0.5), growth(1.0)
        (0.0, 0.5, 1.0)
    """

    start: float
    full: float

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.full <= 1:
            raise ValueError(
                f"start and full are shares of the training, in this order, got {self.start} and {self.full}"
            )

    def __call__(self, progress: float) -> float:
        """Return the strength at this share of the training, 0..1."""
        if progress < self.start:
            return 0.0
        return min(1.0, (progress - self.start) / (self.full - self.start)) if self.full > self.start else 1.0
