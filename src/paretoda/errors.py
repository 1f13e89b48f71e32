"""Errors that a user can correct: each message is one sentence that says what to do."""

from __future__ import annotations


class DataError(ValueError):
    """The data cannot be used; the message says in one sentence what is wrong and what to do."""


class SettingsError(ValueError):
    """A setting is unknown or has no sense; the message says which and what to write instead."""


class RunError(ValueError):
    """A run's directory is not as it must be; the message says what to do."""


class WeightsError(ValueError):
    """The file's tensors are not those of the model; the message names the keys."""


class BackboneError(WeightsError):
    """A backbone cannot be had or cannot read such images; the message says what to do."""
