"""What a study is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paretoda.bench.loading import needs_files
from paretoda.bench.suites import find_data_folder, find_suite
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.tasks.suites import Suite

SUITE = "office-caltech10"
_TASK = "W-A"


def _silent(_done: int, _total: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class StudyRequest:
    """What a study is asked for.

    Args:
        directory: for its results; a study that was stopped goes on here.
        suite: name of the tasks.
        tasks: names; empty: see `chosen`.
        seeds: 0..seeds-1.
        steps: of each run; None: the study's own.
        jobs: runs at a time.
        data: folder of the suite's files; None: $PARETODA_DATA or ../shared/data.
        tell: called with the steps taken and the steps of all runs together.
    """

    directory: Path
    suite: str = SUITE
    tasks: tuple[str, ...] = ()
    seeds: int = 3
    steps: int | None = None
    jobs: int = 1
    data: Path | None = None
    tell: Callable[[int, int], None] = _silent

    @property
    def found(self) -> Suite:
        """The suite itself."""
        return find_suite(self.suite)

    def chosen(self, default: tuple[str, ...] = (_TASK,)) -> tuple[str, ...]:
        """The tasks: those asked for, else those of the default that the suite has, else its first."""
        known = self.found.tasks
        for task in self.tasks:
            if task not in known:
                raise SettingsError(unknown("task", task, known))
        return self.tasks or tuple(task for task in default if task in known) or (next(iter(known)),)

    def one(self) -> str:
        """The task of a study that takes one."""
        task, *others = self.chosen()
        if others:
            raise SettingsError(f"this study takes one task, got {', '.join(self.tasks)}; call it once for each")
        return task

    def folder(self, suites: tuple[str, ...] = ()) -> Path | None:
        """Where the files are; None where the tasks of these suites (by default the own) need none."""
        tasks = [task for name in suites or (self.suite,) for task in find_suite(name).tasks.values()]
        return find_data_folder(self.data) if any(map(needs_files, tasks)) else None
