"""Presets: the settings of the paper and of published codes, by name; settings given beside one take precedence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.io.toml import read_toml

PRESET = "preset"
"""Key of the preset among settings. It is no setting itself: config.toml holds the settings that it stands for."""

DEFAULT_METHOD = "dann"
"""The method whose settings a preset gives if no method is named: the default of `Settings`."""

DEFAULT_TASK = "classification"
"""The task of a preset's own tables: the default of `Settings`."""


@lru_cache
def read_presets() -> dict[str, Any]:
    """Return name -> tables, from presets.toml beside this file."""
    return read_toml(Path(__file__).with_name("presets.toml"))


def choose_suite_form(values: Mapping[str, Any], suite: str) -> dict[str, Any]:
    """Return the settings with their preset in its form for a suite, if it has one.

    Args:
        values: Settings, perhaps with a preset.
        suite: Name of the benchmark.
    """
    name = values.get(PRESET)
    special = isinstance(name, str) and suite in read_presets().get(name, {}).get("suites", {})
    return {**values, PRESET: f"{name}/{suite}"} if special else dict(values)


def expand_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, completed by those of their preset and without its name.

    Args:
        values: Settings, perhaps with a preset; method and target loss are separate.

    Raises:
        SettingsError: If there is no such preset, or no such form of it, or it has no settings for the task.
    """
    given = {key: value for key, value in values.items() if key != PRESET}
    if values.get(PRESET) is None:
        return given
    below = _preset_settings(values[PRESET], given)
    return below | given | _all_options(below, given)


def _preset_settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a preset for the method and target loss that are given.

    Args:
        name: Name of the preset, perhaps with a suite behind a slash.
        given: Settings that take precedence; their method and target loss decide which parts of the preset apply.
    """
    found: dict[str, Any] = {}
    preset, suite = _find(name, str(given.get("task", DEFAULT_TASK)))
    for table in (preset, suite):
        found |= table.get("settings", {})
    if given.get("method") == "source-only" and "target_loss" not in given:
        found = {key: value for key, value in found.items() if key not in ("target_loss", "scheme", "guide")}
    method = str(given.get("method", found.get("method", DEFAULT_METHOD)))
    loss = str(given.get("target_loss", found.get("target_loss", "none"))).partition("+")[0]
    for part in _parts(method, loss):
        for table in (preset, suite):
            more = table.get(part[0], {}).get(part[1], {})
            found |= more | _all_options(found, more)
    return found


def _parts(method: str, loss: str) -> Iterator[tuple[str, str]]:
    """Yield table and key of the parts of a preset that apply; later ones override earlier ones."""
    yield "losses", loss
    yield "methods", method
    yield "methods", f"{method}+{loss}"


def _find(name: str, task: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the tables of the preset for a task and those of its suite; the latter are empty if no suite is named."""
    presets = read_presets()
    name, slash, suite = str(name).partition("/")
    if name not in presets:
        raise SettingsError(unknown("preset", name, presets))
    preset = presets[name]
    if task != DEFAULT_TASK:
        if task not in preset.get("tasks", {}):
            raise SettingsError(f"the preset {name!r} has no settings for --task {task}; leave out --preset")
        preset = preset["tasks"][task]
    suites = preset.get("suites", {})
    if slash and suite not in suites:
        raise SettingsError(unknown(f"suite with settings of its own in the preset {name!r}:", suite, suites))
    return preset, suites.get(suite, {})


def _all_options(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of both as a setting, those that take precedence last; nothing if there are none."""
    if not isinstance(above.get("options", ()), (list, tuple)):  # not a list: the check of the settings reports it
        return {}
    options = [*below.get("options", ()), *above.get("options", ())]
    return {"options": tuple(options)} if options else {}


def split_method(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which a method such as "dann+tcm" is a method and a target loss.

    Args:
        values: Settings by name.
    """
    method, plus, loss = str(values.get("method", "")).partition("+")
    return {**values, "method": method, "target_loss": loss} if plus else dict(values)
