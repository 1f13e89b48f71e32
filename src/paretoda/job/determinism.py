"""`--deterministic`: the same bits each time, or a sentence that says what cannot give them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paretoda.job.settings import Settings, SettingsError
from paretoda.training.seeding import deterministic_algorithms


@contextmanager
def deterministic(settings: Settings) -> Iterator[None]:
    """Inside, torch keeps to what the settings ask for."""
    with deterministic_algorithms(settings.deterministic):
        try:
            yield
        except RuntimeError as error:
            if not settings.deterministic or "deterministic" not in str(error).lower():
                raise
            reason = str(error).split(",")[0].split(". ")[0]
            raise SettingsError(f"{reason}; take --device cpu, or leave out --deterministic") from error
