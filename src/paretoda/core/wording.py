"""Lists of names inside sentences."""

from __future__ import annotations

from collections.abc import Sequence


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
