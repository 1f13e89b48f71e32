"""What the user asks of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paretoda.bench.loading import needs_files
from paretoda.bench.suites import find_data_folder, find_suite
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.tasks.suites import Suite

if TYPE_CHECKING:
    from paretoda.types import Progress

SUITE = "office-caltech10"
_TASK = "W-A"


def _silent(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class StudyRequest:
    """What the user asks of a study.

    Args:
        directory: Directory for its results; a study that was stopped continues here.
        suite: Name of the suite of tasks.
        tasks: Names of the tasks; empty: see `choose_tasks`.
        seeds: Number of seeds, 0..seeds-1.
        steps: Steps of each run; None means the study's own.
        jobs: Runs at a time.
        data: Folder of the suite's files; None means $PARETODA_DATA or ../shared/data.
        calibrate: Whether the study of scales calibrates the losses of every scheme; other studies refuse it.
        tell: Called with what the runs do, such as training, how much is done and how much there is in all.
    """

    directory: Path
    suite: str = SUITE
    tasks: tuple[str, ...] = ()
    seeds: int = 3
    steps: int | None = None
    jobs: int = 1
    data: Path | None = None
    calibrate: bool = False
    tell: Progress = _silent

    @property
    def loaded_suite(self) -> Suite:
        """The suite itself."""
        return find_suite(self.suite)

    def choose_tasks(self, default: tuple[str, ...] = (_TASK,)) -> tuple[str, ...]:
        """Return the tasks asked for, else those of the default that the suite has, else its first.

        Raises:
            SettingsError: The suite has no such task.
        """
        known = self.loaded_suite.tasks
        for task in self.tasks:
            if task not in known:
                raise SettingsError(unknown("task", task, known))
        return self.tasks or tuple(task for task in default if task in known) or (next(iter(known)),)

    def choose_task(self) -> str:
        """Return the task of a study that takes one.

        Raises:
            SettingsError: Several tasks are asked for.
        """
        task, *others = self.choose_tasks()
        if others:
            raise SettingsError(f"this study takes one task, got {', '.join(self.tasks)}; call it once for each")
        return task

    def find_data(self, suites: tuple[str, ...] = ()) -> Path | None:
        """Return the folder of the files; None where the tasks of these suites (by default the own) need none."""
        tasks = [task for name in suites or (self.suite,) for task in find_suite(name).tasks.values()]
        return find_data_folder(self.data) if any(map(needs_files, tasks)) else None
