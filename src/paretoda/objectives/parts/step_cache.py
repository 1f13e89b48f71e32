"""What `forward` makes with some effort and `private_loss` of the same step can use again."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from paretoda.types import Source

Made = TypeVar("Made")


class StepCache(Generic[Made]):
    """Something made for a batch: kept until it is asked for once, and only for that batch."""

    def __init__(self) -> None:
        self._batch: weakref.ref[Source] | None = None
        self._made: Made | None = None

    def keep(self, source: Source, made: Made) -> Made:
        """Keep what was made for the batch with this source, and return it."""
        self._batch, self._made = weakref.ref(source), made
        return made

    def take(self, source: Source) -> Made | None:
        """What was kept, if it was for the batch with this source; it is forgotten at once."""
        made = self._made if self._batch is not None and self._batch() is source else None
        self._batch = self._made = None
        return made
