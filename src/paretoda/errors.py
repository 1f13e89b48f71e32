"""Errors that a user can correct: each message is one sentence that says what to do."""

from __future__ import annotations


class DataError(ValueError):
    """The data cannot be used; the message says in one sentence what is wrong and what to do."""


class SettingsError(ValueError):
    """A setting is unknown or not meaningful; the message says which one and what to write instead."""


class RunError(ValueError):
    """A run cannot be started, resumed, loaded or used as requested; the message says what to do."""


class WeightsError(ValueError):
    """The tensors of the file are not those of the model; the message names the keys."""


class BackboneError(WeightsError):
    """A backbone is not available or cannot read such images; the message says what to do."""
