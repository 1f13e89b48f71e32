"""Options of the parts of a run, written as part.name=value: `alignment.hidden=256`, `propagation.k=5`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from paretoda.io.files import parse_json

_OPTION = re.compile(r"([\w-]+)\.(\w+)=(.+)")


def read_options(options: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return part -> its options by name; parts without options have none.

    A value is read as JSON if it is JSON, and as text otherwise.

    Args:
        options: Options as they are written; of two with the same name the last one counts.

    Example:
        >>> read_options(["alignment.hidden=256"])["alignment"]
        {'hidden': 256}
    """
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for option in options:
        match = _OPTION.fullmatch(option)
        if match is not None:
            part, name, value = match.groups()
            try:
                found[part][name] = parse_json(value)
            except ValueError:
                found[part][name] = value
    return found


def check_parts(options: Sequence[str], parts: Sequence[str]) -> None:
    """Raise ValueError unless every option is written as part.name=value, with a known part.

    Args:
        options: Options as they are written.
        parts: Names of the parts that take options.
    """
    for option in options:
        match = _OPTION.fullmatch(option)
        if match is None or match[1] not in parts:
            raise ValueError(f"options are written as part.name=value, the part one of {', '.join(parts)}: {option!r}")
