"""The tasks that a run can have: one folder each, and one line in this table.

A task is what `paretoda.run.task.Task` says. Tasks are imported when they are looked up, so that their names are known
without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paretoda.core.options import unknown
from paretoda.errors import SettingsError

if TYPE_CHECKING:
    from paretoda.run.task import Task

CLASSIFICATION, SEGMENTATION, REGRESSION = "classification", "segmentation", "regression"

TASKS: dict[str, str | Task[Any, Any]] = {
    CLASSIFICATION: "paretoda.tasks.classification.task.Classification",
    SEGMENTATION: "paretoda.tasks.segmentation.task.Segmentation",
    REGRESSION: "paretoda.tasks.regression.task.Regression",
}
"""Name -> the task, or where its class is."""


def find_task(name: str) -> Task[Any, Any]:
    """Return the task of that name.

    Raises:
        SettingsError: There is no such task.

    Example:
        >>> find_task("classification").name
        'classification'
    """
    if name not in TASKS:
        raise SettingsError(unknown("task", name, TASKS))
    entry = TASKS[name]
    if isinstance(entry, str):
        module, _, kind = entry.rpartition(".")
        entry = getattr(import_module(module), kind)()
        TASKS[name] = entry
    return entry
