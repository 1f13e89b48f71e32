"""Results of `forward` that `private_loss` of the same step can use again."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from paretoda.types import Source

Made = TypeVar("Made")


class StepCache(Generic[Made]):
    """Result for one batch; it is kept until it is taken once, and only for that batch."""

    def __init__(self) -> None:
        self._batch: weakref.ref[Source] | None = None
        self._made: Made | None = None

    def __deepcopy__(self, memo: object) -> StepCache[Made]:
        """Return an empty cache: a result belongs to the objective that computed it."""
        return StepCache()

    def keep(self, source: Source, made: Made) -> Made:
        """Store the result for the batch with this source, and return it."""
        self._batch, self._made = weakref.ref(source), made
        return made

    def take(self, source: Source) -> Made | None:
        """Return and delete the stored result; None unless it is for the batch with this source."""
        made = self._made if self._batch is not None and self._batch() is source else None
        self._batch = self._made = None
        return made
