"""What is wrong with the settings, in one sentence for the user."""

from __future__ import annotations


class SettingsError(ValueError):
    """A setting is unknown or has no sense; the message says which and what to write instead."""
