"""Trackers: the course of a run, written for TensorBoard; needs the extra `track`."""

# Imports inside functions: TensorBoard is an extra.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paretoda.errors import SettingsError
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import scalars
from paretoda.run.settings import Settings

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


@dataclass(frozen=True, eq=False)
class Tracker:
    """Writes numbers by name and step.

    Args:
        writer: TensorBoard's writer; None: nothing is written.
    """

    writer: SummaryWriter | None

    def step(self, line: Mapping[str, Any], lr: float) -> None:
        """Write the losses, weights and cosines of a step, and its learning rate."""
        self._add({**scalars(line), "lr": lr}, line["step"])

    def scores(self, taken: int, found: Mapping[str, float]) -> None:
        """Write the label-free scores of a candidate."""
        self._add({f"score/{name}": score for name, score in found.items()}, taken)

    def flush(self) -> None:
        """Flush to disk, so that a checkpoint is never ahead of the tracker."""
        if self.writer is not None:
            self.writer.flush()

    def _add(self, numbers: Mapping[str, float], step: int) -> None:
        if self.writer is not None:
            for name, number in numbers.items():
                self.writer.add_scalar(name, number, step)


@contextmanager
def open_tracker(settings: Settings, directory: RunDirectory | None, first: int) -> Iterator[Tracker]:
    """Open the tracker of a run; it is closed however the run ends.

    Args:
        settings: Settings of the run.
        directory: Directory of the run; None: nothing is written.
        first: Number of steps taken so far; what a killed run has written about later steps is removed.
    """
    if directory is None or settings.track == "none":
        yield Tracker(None)
        return
    writer = _writer()(str(directory.tensorboard), purge_step=first + 1)
    try:
        yield Tracker(writer)
    finally:
        writer.close()


def check_tracker(settings: Settings, directory: RunDirectory | None) -> None:
    """Raise SettingsError, before any data are read, where the tracker cannot write."""
    if settings.track == "none":
        return
    if directory is None:
        raise SettingsError(f"--track {settings.track} writes into the run's directory: give out")
    _writer()


def _writer() -> type[SummaryWriter]:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise SettingsError('--track tensorboard needs TensorBoard: pip install "paretoda[track]"') from error
    return SummaryWriter
