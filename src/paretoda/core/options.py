"""Names and options of the exchangeable parts, and lists of names in sentences: unknown names get the nearest one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

Options = Mapping[str, object]
"""Settings of a part by name."""
Part = TypeVar("Part")


def hint(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name as a question, or list all.

    Examples:
        >>> hint("dan", ["dann", "coral"])
        "did you mean 'dann'?"
    """
    names = list(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"choose from {', '.join(names)}" if names else "it has none"


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Sentence for a name that does not exist.

    Examples:
        >>> unknown("scheme", "mgd", ["mgda", "linear"])
        "there is no scheme 'mgd'; did you mean 'mgda'?"
    """
    return f"there is no {kind} {name!r}; {hint(name, known)}"


def with_options(name: str, factory: Callable[..., Part], given: Options, options: Options | None) -> Part:
    """Call the factory with the given arguments and the options.

    Args:
        name: Name of the part, for the error.
        factory: Class or a partial of one.
        given: Arguments that are not options.
        options: Options by name; None for none.

    Raises:
        ValueError: An option is unknown.
    """
    known = [option for option in inspect.signature(factory).parameters if option not in given]
    for option in options or {}:
        if option not in known:
            raise ValueError(f"{name!r} has no option {option!r}; {hint(option, known)}")
    return factory(**given, **(options or {}))


def join_words(words: Sequence[str]) -> str:
    """Join words with commas and a final "and".

    Args:
        words: Words in the order in which they appear.

    Returns:
        "a", "a and b" or "a, b and c"; an empty text for no words.

    Examples:
        >>> join_words(["im", "mixval", "dev"])
        'im, mixval and dev'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def name_some(names: Sequence[str], most: int = 5) -> str:
    """Join the first few names with commas and say how many more there are.

    Args:
        names: All names.
        most: Largest number of names that are shown.

    Returns:
        For example "a, b and 3 more".

    Examples:
        >>> name_some(["conv1", "bn1", "conv2"], most=2)
        'conv1, bn1 and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
