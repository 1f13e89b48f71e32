"""A finished run that another one begins with, in the place of a source: what every task checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from paretoda.errors import RunError
from paretoda.evaluation.validators import WITH_SOURCE
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.settings import SETTINGS, Settings
from paretoda.run.task import Task

Found = TypeVar("Found")


def check_without_source(settings: Settings, task: Task[Any, Any]) -> None:
    """Raise ValueError for settings that make no sense without a source, whatever the task.

    Args:
        settings: Settings of a run that begins with another one.
        task: Task of the run.
    """
    if task.kept_settings is None:
        raise ValueError(f"--from is not for {task.name}; leave it out")
    given = [name for name in task.kept_settings if getattr(settings, name) != SETTINGS[name].default]
    if given:
        raise ValueError(
            f"the network of --from is kept as it is, and there is no source; leave out "
            f"{', '.join(SETTINGS[name].option for name in given)}"
        )
    if settings.method == "source-only" and not settings.target_losses:
        raise ValueError("without a source something must be trained on the target; leave out --target-loss none")
    if reading := [name for name in settings.select.split("+") if name in WITH_SOURCE]:
        raise ValueError(f"{reading[0]!r} scores by labels of a source, and --from has none; leave it out of --select")


def read_given_run(place: str, read: Callable[[RunDirectory], Found]) -> Found:
    """Return what `read` makes of the directory of a finished run.

    Args:
        place: Directory of the run.
        read: Loads a predictor; nothing in the files is executed.

    Raises:
        RunError: There is no such finished run.
    """
    try:
        return read(RunDirectory(Path(place)))
    except RunError as error:
        raise RunError(f"--from: {error}") from error
