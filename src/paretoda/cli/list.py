"""`paretoda list`: every name that an option takes, with the first line of its docstring."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Task
from paretoda.tasks import CLASSIFICATION

_NO_ENTRY = {
    "source-only": "No alignment: the source alone, the baseline.",
    "none": "No target loss.",
}
_FIELDS = {
    "methods": "method",
    "schemes": "scheme",
    "target-losses": "target_loss",
    "guides": "guide",
    "validators": "select",
    "backbones": "backbone",
}
"""Kind of name -> the setting that takes it."""
_NOTES = {
    "methods": "A target loss may follow a plus: --method dann+im means --method dann --target-loss im.",
    "target-losses": "It may be part of the method: --method dann+im means --method dann --target-loss im.",
    "guides": "Schemes without a guide do not read it.",
    "backbones": "--backbone-weights takes a file, a folder, a name at the hub, 'default' or 'none'.",
    "validators": "--select takes one of these, several as in ensv+im for their mean rank, or 'last'.",
    "tables": "For segmentation: adapt and doctor take --source-table NAME, evaluate takes --table NAME.",
    "presets": "Options besides --preset take precedence; the run's config.toml lists every setting.",
}


def list_names(
    what: Annotated[
        Literal[
            "methods",
            "schemes",
            "target-losses",
            "guides",
            "validators",
            "backbones",
            "suites",
            "baselines",
            "presets",
            "tables",
        ],
        typer.Argument(),
    ],
    task: Task = CLASSIFICATION,
    json: Json = False,
) -> None:
    """Show the names that an option takes."""
    with Console(as_json=json) as console:
        lines, default = (_TABLES[what](), "") if what in _TABLES else _read_task_table(what, task)
        rows = [[name, f"{line} (default)" if name in default.split("+") else line] for name, line in lines.items()]
        console.table({what: "left", "": "left"}, rows)
        note = _NOTES.get(what)
        if note is not None:
            console.result()
            console.result(note)
        console.finish(lambda: {what: lines, "default": default})


def _describe(table: Mapping[str, Callable[..., Any] | None]) -> dict[str, str]:
    """Return name -> first line of the docstring of its entry."""
    return {name: _first_line(entry, name) for name, entry in table.items()}


def _first_line(entry: Callable[..., Any] | None, name: str) -> str:
    """Return the first line of the docstring; the arguments of a partial follow in parentheses."""
    if entry is None:
        return _NO_ENTRY[name]
    fixed = ""
    if isinstance(entry, partial):
        named = [f"{key}={getattr(value, '__name__', value)}" for key, value in entry.keywords.items()]
        fixed = f" ({', '.join(named)})"
        entry = entry.func
    return (entry.__doc__ or "").strip().splitlines()[0] + fixed


def _suites() -> dict[str, str]:
    from paretoda.bench.suites import SUITES

    return {name: f"{suite.about} Tasks: {', '.join(suite.tasks)}." for name, suite in SUITES.items()}


def _baselines() -> dict[str, str]:
    from paretoda.bench.baselines import BASELINES

    return _describe(BASELINES)


def _presets() -> dict[str, str]:
    from paretoda.run.presets import read_presets

    lines = {}
    for name, preset in read_presets().items():
        forms = [f"{name}/{suite}" for suite in preset.get("suites", {})]
        forms += [f"for --task {task}" for task in preset.get("tasks", {})]
        lines[name] = preset["about"] + (f" Also {', '.join(forms)}." if forms else "")
    return lines


def _tables() -> dict[str, str]:
    from paretoda.data.segmentation.label_tables import TABLE_DESCRIPTIONS

    return TABLE_DESCRIPTIONS


def _read_task_table(what: str, task: str) -> tuple[dict[str, str], str]:
    """Return name -> line of a table that every task has its own of, and the default."""
    from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
    from paretoda.evaluation.target_labels import TargetLikelihood
    from paretoda.evaluation.validators import ENSEMBLE
    from paretoda.run.settings import LABELS
    from paretoda.tasks import CLASSIFICATION, find_task
    from paretoda.tasks.settings import make_settings

    tables = find_task(task).tables
    lines = {
        "methods": lambda: _describe(tables.methods),
        "schemes": lambda: _describe(tables.schemes),
        "target-losses": lambda: {
            **({"auto": "MCC for features, TCM for images."} if task == CLASSIFICATION else {}),
            **_describe(tables.target_losses),
        },
        "guides": lambda: _describe(tables.guides),
        "validators": lambda: {
            **({"ensemble": f"The mean rank of {', '.join(ENSEMBLE)}."} if "ensemble" in tables.rules else {}),
            **_describe(tables.validators),
            **_describe({name: kind for name, kind in JOINT_VALIDATORS.items() if name in tables.rules}),
            **(_describe({LABELS: TargetLikelihood}) if LABELS in tables.guides else {}),
        },
        "backbones": lambda: dict(tables.backbones),
    }[what]()
    return lines, str(getattr(make_settings({"task": task}), _FIELDS[what]))


_TABLES: dict[str, Callable[[], dict[str, str]]] = {
    "suites": _suites,
    "baselines": _baselines,
    "presets": _presets,
    "tables": _tables,
}
"""Kinds of names that do not depend on the task."""
