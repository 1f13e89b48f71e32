"""Presets: the settings of the paper and of other people's codes, by name; what is given beside them counts more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.io.toml import read_toml

PRESET = "preset"
"""Its key among settings; it is no setting itself, so a run's config.toml has what it stands for instead."""

USUAL_METHOD = "dann"
"""Whose settings a preset gives where nobody names a method: the one that a run then has."""


@lru_cache
def known_presets() -> dict[str, Any]:
    """Name -> tables, from presets.toml beside this file."""
    return read_toml(Path(__file__).with_name("presets.toml"))


def for_suite(values: Mapping[str, Any], suite: str) -> dict[str, Any]:
    """The same settings, their preset in its form for the suite where it has one.

    Args:
        values: settings, perhaps with a preset.
        suite: a benchmark's name.
    """
    name = values.get(PRESET)
    special = isinstance(name, str) and suite in known_presets().get(name, {}).get("suites", {})
    return {**values, PRESET: f"{name}/{suite}"} if special else dict(values)


def expand_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with those of their preset below them and without its name.

    Args:
        values: settings whose method and target loss are apart, perhaps with a preset.
    """
    given = {key: value for key, value in values.items() if key != PRESET}
    if values.get(PRESET) is None:
        return given
    below = preset_settings(values[PRESET], given)
    return below | given | _all_options(below, given)


def preset_settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the preset says to a run of that method and target loss.

    Args:
        name: of the preset, perhaps with a suite behind a slash.
        given: settings that count more; their method and target loss decide which parts of the preset apply.
    """
    found: dict[str, Any] = {}
    preset, suite = _find(name)
    for table in (preset, suite):
        found |= table.get("settings", {})
    if given.get("method") == "source-only" and "target_loss" not in given:
        found = {key: value for key, value in found.items() if key not in ("target_loss", "scheme", "guide")}
    method = str(given.get("method", found.get("method", USUAL_METHOD)))
    loss = str(given.get("target_loss", found.get("target_loss", "none"))).partition("+")[0]
    for part in _parts(method, loss):
        for table in (preset, suite):
            more = table.get(part[0], {}).get(part[1], {})
            found |= more | _all_options(found, more)
    return found


def _parts(method: str, loss: str) -> Iterator[tuple[str, str]]:
    """Table and key of what a preset may say, in the order in which it is laid over."""
    yield "losses", loss
    yield "methods", method
    yield "methods", f"{method}+{loss}"


def _find(name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The preset's tables, and those of its suite: empty where none is named."""
    presets = known_presets()
    name, slash, suite = str(name).partition("/")
    if name not in presets:
        raise SettingsError(unknown("preset", name, presets))
    suites = presets[name].get("suites", {})
    if slash and suite not in suites:
        raise SettingsError(unknown(f"suite with settings of its own in the preset {name!r}:", suite, suites))
    return presets[name], suites.get(suite, {})


def _all_options(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The options of both, those that count more at the end; nothing where there are none."""
    if not isinstance(above.get("options", ()), (list, tuple)):  # no list: the settings will say so
        return {}
    options = [*below.get("options", ()), *above.get("options", ())]
    return {"options": tuple(options)} if options else {}
