"""Trackers: what happens in a run, written for the pages that users watch; needs the extra `track`."""

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
        writer: TensorBoard's; None: nobody watches.
    """

    writer: SummaryWriter | None

    def step(self, line: Mapping[str, Any], lr: float) -> None:
        """The losses, weights and cosines of a step, and its learning rate."""
        self._add({**scalars(line), "lr": lr}, line["step"])

    def scores(self, taken: int, found: Mapping[str, float]) -> None:
        """A candidate's label-free scores."""
        self._add({f"score/{name}": score for name, score in found.items()}, taken)

    def flush(self) -> None:
        """Have on the disk what a checkpoint knows of."""
        if self.writer is not None:
            self.writer.flush()

    def _add(self, numbers: Mapping[str, float], step: int) -> None:
        if self.writer is not None:
            for name, number in numbers.items():
                self.writer.add_scalar(name, number, step)


@contextmanager
def open_tracker(settings: Settings, directory: RunDirectory | None, first: int) -> Iterator[Tracker]:
    """The tracker of a run, closed however the run ends.

    Args:
        settings: of the run.
        directory: None: nothing is written.
        first: how many steps are behind; what a killed run wrote of later ones is taken back.
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
    """Raise, before anything is read, where the wanted tracker cannot write."""
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
