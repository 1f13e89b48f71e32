"""Contenders from a file, and shallow ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretoda.bench.baselines import BASELINES
from paretoda.bench.contenders import Contender, without_oracle
from paretoda.core.names import unknown
from paretoda.job.config_file import read_toml
from paretoda.job.settings import SettingsError, make_settings


def read_contenders(path: Path, same: Mapping[str, Any]) -> list[Contender]:
    """Contenders from a TOML file: a table for each, its settings as in a config file, or `baseline = NAME`.

    Args:
        path: of the file.
        same: settings of all; a contender's own come first.
    """
    found = []
    for name, settings in read_toml(path).items():
        if not isinstance(settings, dict):
            raise SettingsError(f"{path}: {name!r} is no contender; write [{name!r}] and its settings below it")
        if "baseline" in settings:
            if len(settings) > 1:
                raise SettingsError(f"{path}: {name!r} has a baseline, which takes no other settings; remove them")
            found.append(baseline(settings["baseline"], name))
            continue
        values = {**same, **settings}
        make_settings(without_oracle(values))
        found.append(Contender(name, values))
    return found


def baseline(kind: object, name: str | None = None) -> Contender:
    """A shallow contender."""
    if not isinstance(kind, str) or kind not in BASELINES:
        raise SettingsError(unknown("baseline", str(kind), BASELINES))
    return Contender(name or kind, {"baseline": kind})
