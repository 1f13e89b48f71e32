"""A run's network as its settings want it kept in memory and computed, and what the user should know of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from paretoda.domains import Model
from paretoda.job.combinations import refusal
from paretoda.job.settings import Settings, SettingsError
from paretoda.models.batchnorm import batch_norms
from paretoda.models.checkpointing import checkpoint_activations
from paretoda.models.compiling import NoCompilerError, check_compiler, compile_encoder


def check_machine(settings: Settings) -> None:
    """Raise a SettingsError for what this machine cannot do, before any data are read."""
    if settings.compile:
        try:
            check_compiler()
        except NoCompilerError as error:
            raise SettingsError(str(error)) from error


def check_kind(settings: Settings, kind: str) -> None:
    """Raise a SettingsError for what makes no sense for such data.

    Args:
        settings: of the run.
        kind: of the pair that is trained on: "features", or images of some sort.
    """
    if kind == "features" and (reason := refusal({*settings.circumstances, "feature data"})) is not None:
        raise SettingsError(reason)


def prepare(settings: Settings, model: Model) -> None:
    """Lay the network out, checkpoint and compile its encoder, as far as the settings want it."""
    if settings.channels_last:
        layout: Any = {"memory_format": torch.channels_last}  # torch's types know .to() without it
        model.to(**layout)
    if settings.checkpoint_activations:
        checkpoint_activations(model.encoder)
    if settings.compile:
        compile_encoder(model.encoder)


def notes(settings: Settings, model: Model) -> Iterator[str]:
    """What is other than one would expect."""
    normalised = any(layer.training for layer in batch_norms(model.encoder))
    if settings.accumulate > 1 and normalised:
        rows = settings.batch_size // settings.accumulate
        yield (
            f"BatchNorm normalises every micro-batch ({rows} samples of a domain) by itself: with it, --accumulate "
            f"{settings.accumulate} is not exactly the whole batch of {settings.batch_size}"
        )


def skipped(history: list[dict[str, object]]) -> str | None:
    """How many steps a gradient scaler left out; None where it left out none."""
    count = sum(line["finite"] is False for line in history)
    if not count:
        return None
    return f"{count} of {len(history)} steps overflowed in half precision and were skipped; the scale was lowered"
