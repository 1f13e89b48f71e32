"""Names that users and strangers give to files and classes, on a terminal: seen, not obeyed."""

from __future__ import annotations

import unicodedata

LONGEST = 2000
"""Letters of a sentence; a longer one has its middle left out."""

_KEPT = "\n\t"


def shown(text: str, keep: str = _KEPT) -> str:
    r"""The text with every control character, and every one that turns the writing round, as its escape: \x1b.

    Args:
        text: that may hold anything.
        keep: control characters that are meant.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter in keep or not _acts(letter) else _escaped(letter) for letter in text)


def shortened(text: str) -> str:
    """The text, its middle left out where it is longer than anybody reads."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def _acts(letter: str) -> bool:
    """Controls, directions of writing and the like, and halves of letters, which cannot be printed at all."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
