"""Checked settings: the fields of `Settings`, with the names, defaults and checks that their task defines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from paretoda.core.options import name_some, unknown
from paretoda.errors import SettingsError
from paretoda.models.backbones import EXTERNAL_PREFIXES, is_external
from paretoda.run.given_run import check_without_source
from paretoda.run.presets import PRESET, expand_preset, split_method
from paretoda.run.settings import AUTOMATIC, LABELS, SETTINGS, Settings, parse_settings
from paretoda.run.task import Task
from paretoda.tasks import CLASSIFICATION, TASKS, find_task


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Check settings and complete them with defaults.

    Args:
        values: Settings by name. A `method` such as "dann+tcm" also names the target loss, and a `preset` is replaced
            by the settings that it stands for.

    Raises:
        SettingsError: A setting is unknown, out of bounds, or contradicts another.

    Example:
        >>> make_settings({"method": "dann+im", "steps": 100}).target_loss
        'im'
    """
    for key in values:
        if key not in SETTINGS and key != PRESET:
            raise SettingsError(unknown("setting", key, [*SETTINGS, PRESET]))
    split = split_method(values)
    if values.get("target_loss", split.get("target_loss")) != split.get("target_loss"):
        raise SettingsError(
            f"the method {values['method']!r} and the target loss {values['target_loss']!r} contradict each other"
        )
    task = find_task(str(values.get("task", CLASSIFICATION)))
    values = expand_preset(split)
    # The plain baseline, unless more is given; a run that begins with another one has no source loss.
    if values.get("method") == "source-only" and values.get("from_run") is None:
        values.setdefault("target_loss", "none")
        if values["target_loss"] == "none":
            values.setdefault("scheme", "linear")
    settings = parse_settings({**task.defaults(values), **values})
    try:
        _check_names(settings, task)
        task.check(settings)
        if settings.from_run is not None:
            check_without_source(settings, task)
        settings.check(task.own_parts, task.smallest_batch)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    return settings


def _check_names(settings: Settings, task: Task[Any, Any]) -> None:
    """Raise ValueError where a name is not in the task's tables; the message suggests the nearest one."""
    losses = settings.target_loss.split("+")
    given = {
        "method": [settings.method],
        "target loss": losses,
        "scheme": [settings.scheme],
        "guide": [settings.guide],
        "backbone": [settings.backbone],
        "rule of selection": settings.select.split("+"),
    }
    for kind, names in given.items():
        for name in names:
            _check_name(kind, name, task)
    if len(set(losses)) < len(losses) or ("none" in losses and len(losses) > 1):
        whole = settings.target_loss
        raise ValueError(f"the target loss {whole!r} makes no sense: name each loss once, and 'none' alone")
    rule = settings.select.split("+")
    if len(set(rule)) < len(rule) or (len(rule) > 1 and {"ensemble", "last"} & set(rule)):
        raise ValueError(
            f"the rule of selection {settings.select!r} makes no sense: name each validator once, and 'ensemble' or "
            "'last' alone"
        )


def _check_name(kind: str, name: str, task: Task[Any, Any]) -> None:
    if kind == "backbone" and is_external(name):
        if not _takes_external(task):
            raise ValueError(f"the backbone {name!r} is for --task {CLASSIFICATION}, not for {task.name}")
        if name in EXTERNAL_PREFIXES:
            raise ValueError(f"the backbone {name!r} lacks a name after the colon, as in {EXTERNAL_PREFIXES[name]}")
        return
    if name in _names(kind, task) or (kind, name, task.name) == ("target loss", AUTOMATIC, CLASSIFICATION):
        return
    for other in map(find_task, TASKS):
        if name in _names(kind, other):
            known = name_some(list(_names(kind, task)), most=12)
            raise ValueError(f"the {kind} {name!r} is for --task {other.name}, not for {task.name}, which has {known}")
    raise ValueError(unknown(kind, name, _names(kind, task)))


def _takes_external(task: Task[Any, Any]) -> bool:
    """Return whether the task takes backbones of other libraries, such as timm:NAME."""
    return any(map(is_external, task.tables.backbones))


def _names(kind: str, task: Task[Any, Any]) -> Collection[str]:
    tables = task.tables
    labels = [LABELS] if LABELS in tables.guides else []
    return {
        "method": list(tables.methods),
        "target loss": list(tables.target_losses),
        "scheme": list(tables.schemes),
        "guide": list(tables.guides),
        "backbone": [*tables.backbones, *(EXTERNAL_PREFIXES.values() if _takes_external(task) else ())],
        "rule of selection": [*tables.rules, *tables.validators, *labels],
    }[kind]
