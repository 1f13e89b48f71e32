"""What is wrong with the data, in one sentence for the user."""

from __future__ import annotations


class DataError(ValueError):
    """The data cannot be used; the message says in one sentence what is wrong and what to do."""
