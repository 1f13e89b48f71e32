"""The training loop: steps first..steps-1, and what follows each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from paretoda.gradients import Report
from paretoda.types import Batch

After: TypeAlias = Callable[[int, Report], None]
"""Called with the number of steps taken and the report of the last one."""


class Trainable(Protocol):
    """Anything that takes a step on a batch; unusual training loops can implement it themselves."""

    def advance(self, progress: float) -> None:
        """Set schedules to this share of the training, 0..1."""
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
        step: Takes a step on a batch.
        batches: Returns the batch of a step, given its number.
        steps: Number of steps in all; schedules run over these.
        first: First step, when a run is resumed.
        before: Called with the step's number before it (seeding, refreshing whole-set knowledge).
        after: Called in order with the number of steps taken and the report.

    Returns:
        The reports of the steps that were taken.

    Examples:
        >>> class Counter:
        ...     def advance(self, progress):
        ...         self.progress = progress
        ...
        ...     def __call__(self, batch):
        ...         return batch
        >>> fit(Counter(), lambda number: f"batch {number}", steps=4, first=2)
        ['batch 2', 'batch 3']
    """
    history = []
    for index in range(first, steps):
        step.advance(index / steps)  # before refreshing, which depends on how much has been learned
        if before is not None:
            before(index)
        report = step(batches(index))
        history.append(report)
        for hook in after:
            hook(index + 1, report)
    return history
