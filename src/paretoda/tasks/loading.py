"""Loading finished runs, whatever their task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from paretoda.errors import DataError, RunError, SettingsError, WeightsError
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.model_files import read_task
from paretoda.run.task import Inputs, Task
from paretoda.tasks import find_task


def load_run(path: Path, device: torch.device) -> tuple[Task[Any, Any], Any]:
    """Load the model of a finished run; nothing in its files is executed.

    Args:
        path: Directory of a finished run.
        device: Device of the networks.

    Returns:
        The task of the run and its predictor.

    Raises:
        RunError: There is no finished run, or it is damaged.
    """
    if not path.is_dir():
        raise RunError(f"the folder {path} is missing: give the directory of a finished run")
    directory = RunDirectory(path)
    task = find_task_of(directory)
    return task, task.load(directory, device)


def load_ensemble(paths: Sequence[Path], device: torch.device) -> tuple[Task[Any, Any], Any]:
    """Load several finished runs as one predictor, whose probabilities are the mean of theirs.

    Args:
        paths: Directories of finished runs of one task with the same classes.
        device: Device of the networks.

    Returns:
        The task of the runs and the predictor.

    Raises:
        RunError: The runs do not fit together, or one of them cannot be loaded.
    """
    if not paths:
        raise RunError("give at least one finished run")
    task, first = load_run(paths[0], device)
    predictors = [first]
    for path in paths[1:]:
        other, predictor = load_run(path, device)
        if other is not task:
            raise RunError(f"the run in {path} is one of {other.name}: only runs of one task have a mean")
        predictors.append(predictor)
    return task, average(task, predictors)


def average(task: Task[Any, Any], predictors: Sequence[Any]) -> Any:
    """Return one predictor whose probabilities are the mean of those of the predictors.

    Raises:
        RunError: Their classes differ.
    """
    first = predictors[0].classes
    for number, predictor in enumerate(predictors, start=1):
        if predictor.classes != first:
            raise RunError(
                f"runs of different classes have no mean: run {number} has {', '.join(predictor.classes)}, "
                f"the first has {', '.join(first)}"
            )
    return task.average(predictors)


def reopen_inputs(directory: RunDirectory, device: torch.device, callbacks: Callbacks = NO_CALLBACKS) -> Inputs | None:
    """Open the data of a run again; None where they were in memory, or are no longer what and where they were."""
    settings, given = directory.read_config()
    begins = "source" in given or settings.from_run is not None
    places = [place for what in given.values() for place in (what if isinstance(what, list) else [what])]
    if not begins or not all(Path(place).is_absolute() for place in places):
        return None
    try:
        inputs: Inputs = find_task(settings.task).open(
            settings, given.get("source"), given.get("target"), device, callbacks, resuming=True
        )
    except (DataError, RunError, SettingsError, WeightsError, OSError):
        return None
    return inputs


def find_task_of(directory: RunDirectory) -> Task[Any, Any]:
    """Return the task of a finished run.

    Raises:
        RunError: The run is of a task that this version does not have.
    """
    try:
        return find_task(read_task(directory.description))
    except SettingsError as error:
        raise RunError(f"{directory.description}: {error}") from error
