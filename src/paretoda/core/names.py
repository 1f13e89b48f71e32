"""What to say when a name is not known: the nearest one, or all."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
