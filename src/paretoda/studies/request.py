"""What the user asks of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretoda.bench.suites import find_suite
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.tasks import CLASSIFICATION
from paretoda.tasks.suites import Suite

if TYPE_CHECKING:
    from collections.abc import Callable

    from paretoda.types import Progress

SUITE = "office-caltech10"
_TASK = "W-A"


def _tell_nobody(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


def _say_nothing(_sentence: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class StudyRequest:
    """What the user asks of a study.

    Args:
        directory: Directory for its results; a study that was stopped continues here.
        suite: Name of the suite of tasks.
        tasks: Names of the tasks; empty: see `choose_tasks`.
        seeds: Number of seeds, 0..seeds-1.
        jobs: Runs at a time.
        data: Folder of the suite's files; None means $PARETODA_DATA or ../shared/data.
        settings: Settings of all runs, perhaps with a preset; what the study itself sets for a run takes precedence.
        factors: Factors of the losses in the study of scales; empty: those of the paper. Other studies refuse them.
        rows: Which rows the ablation has, "paper" or "ours"; empty: both. Other studies refuse it.
        tell: Called with what the runs do, such as training, how much is done and how much there is in all.
        say: Called with sentences for the user before the runs start.
    """

    directory: Path
    suite: str = SUITE
    tasks: tuple[str, ...] = ()
    seeds: int = 3
    jobs: int = 1
    data: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    factors: tuple[float, ...] = ()
    rows: str = ""
    tell: Progress = _tell_nobody
    say: Callable[[str], None] = _say_nothing

    @property
    def loaded_suite(self) -> Suite:
        """The suite itself.

        Raises:
            DataError: There is no such suite.
            SettingsError: Its tasks are not of classification.
        """
        suite = find_suite(self.suite)
        if suite.task != CLASSIFICATION:
            raise SettingsError(
                f"studies are of {CLASSIFICATION}, and {self.suite} is of {suite.task}; take another suite"
            )
        return suite

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
