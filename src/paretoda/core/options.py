"""Names and options of the exchangeable parts: an unknown one is refused with the nearest known one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar


def hint(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or the list of all."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"choose from {', '.join(names)}" if names else "it has none"


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that does not exist."""
    return f"there is no {kind} {name!r}; {hint(name, known)}"


Options = Mapping[str, object]
"""A part's own settings by name."""

Part = TypeVar("Part")


def with_options(name: str, factory: Callable[..., Part], given: Options, options: Options | None) -> Part:
    """Call the factory with what is given and with the options.

    Args:
        name: Of the part, for the error.
        factory: a class or a partial of one.
        given: Arguments that are no options.
        options: By name; None for none.
    """
    known = [option for option in inspect.signature(factory).parameters if option not in given]
    for option in options or {}:
        if option not in known:
            raise ValueError(f"{name!r} has no option {option!r}; {hint(option, known)}")
    return factory(**given, **(options or {}))
