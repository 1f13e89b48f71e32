"""Settings as a TOML file, written and read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretoda.errors import SettingsError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the settings of a config file.

    Raises:
        SettingsError: There is no such file, or it is no TOML.
    """
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"there is no config file {path}") from error
    except RecursionError as error:
        raise SettingsError(f"{path} is not a TOML file of ours: it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, bytes that are no text, numbers of thousands of digits
        raise SettingsError(f"{path} is not a TOML file: {error}") from error


def to_toml(values: Mapping[str, Any]) -> str:
    r"""Return flat settings as TOML: strings, numbers, booleans and lists of them; None is left out.

    >>> to_toml({"steps": 100, "method": "dann", "clip": None})
    'steps = 100\nmethod = "dann"\n'
    """
    return "".join(
        f"{key} = {json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)}\n"
        for key, value in values.items()
        if value is not None
    )
