"""The batches of a run, read ahead by threads while earlier steps are taken."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType

from paretoda.data.pair import Pair
from paretoda.data.prefetching import prefetch
from paretoda.training.snapshot import move_batch, pin_batch
from paretoda.training.step import Step
from paretoda.types import Batch


class Prefetcher:
    """Returns the batch of each step on the model's device; as a context manager, it ends its threads.

    Args:
        pair: Source and target.
        step: The step that reads the batches.
        numbers: Numbers of the steps to come.
        every: A guide is expected at every so many steps; where it was not read ahead, it is read on demand.
    """

    def __init__(self, pair: Pair, step: Step, numbers: range, every: int) -> None:
        self._pair, self._step, self._every = pair, step, every
        self._numbers = iter(numbers)
        self._guided = step.guide is not None
        self._read = prefetch(self._read_ahead, numbers, pair.workers) if pair.workers else None

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._read is not None:
            self._read.close()

    def __call__(self, number: int) -> Batch:
        """Return the batch of a step; steps must be asked for in order."""
        if self._read is None:
            batch = self._batch(number, guide=self._step.wants_guide)
        else:
            if next(self._numbers) != number:
                raise ValueError(f"the batch of step {number} was asked for out of turn")
            batch = self._as_wanted(next(self._read), number)
        return move_batch(batch, self._step.device)

    def _batch(self, number: int, *, guide: bool) -> Batch:
        """Read this process's share of the batch."""
        return self._pair.batch(number, guide=guide, processes=self._step.processes)

    def _read_ahead(self, number: int) -> Batch:
        guide = self._guided and number % self._every == 0
        return pin_batch(self._batch(number, guide=guide), self._step.device)

    def _as_wanted(self, batch: Batch, number: int) -> Batch:
        """Return exactly what would have been read without threads."""
        if not self._step.wants_guide:
            return replace(batch, guide=None, guide_index=None)
        return batch if batch.guide is not None else self._batch(number, guide=True)
