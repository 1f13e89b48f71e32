"""Options of a run's parts, written as part.name=value: `alignment.hidden=256`, `propagation.k=5`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from paretoda.io.files import parse_json

_OPTION = re.compile(r"([\w-]+)\.(\w+)=(.+)")


def read_options(options: Sequence[str], parts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The options of each part by name; values are read as JSON where they are JSON, and are texts elsewhere.

    Args:
        options: as they are written; of two with the same name the last counts.
        parts: names of what has options; any other is a ValueError.
    """
    found: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for option in options:
        match = _OPTION.fullmatch(option)
        if match is None or match[1] not in found:
            raise ValueError(f"options are written as part.name=value, the part one of {', '.join(parts)}: {option!r}")
        part, name, value = match.groups()
        try:
            found[part][name] = parse_json(value)
        except ValueError:
            found[part][name] = value
    return found
