"""The loop: steps first..steps-1, and whatever comes after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from paretoda.gradients import Report
from paretoda.types import Batch

After: TypeAlias = Callable[[int, Report], None]
"""Called with the number of steps taken and the report of the last one."""


class Trainable(Protocol):
    """Anything that takes a step on a batch; odd loops write their own."""

    def advance(self, progress: float) -> None:
        """Set schedules to this share of the training."""
        ...

    def __call__(self, batch: Batch) -> Report:
        """Take one step."""
        ...


def fit(
    step: Trainable,
    batches: Callable[[int], Batch],
    *,
    steps: int,
    first: int = 0,
    before: Callable[[int], None] | None = None,
    after: Sequence[After] = (),
) -> list[Report]:
    """Take the steps first..steps-1.

    Args:
        step: what to do with a batch.
        batches: the batch of a step, by its number.
        steps: how many there are in all; schedules run over these.
        first: where to begin, when a run is resumed.
        before: called with the step's number before it (seeding, refreshing whole-set knowledge).
        after: called in order with the number of steps taken and the report.

    Returns:
        The reports of the steps that were taken.
    """
    history = []
    for index in range(first, steps):
        step.advance(index / steps)  # first: what refreshes must know whether anything has been learned
        if before is not None:
            before(index)
        report = step(batches(index))
        history.append(report)
        for hook in after:
            hook(index + 1, report)
    return history
