"""Who is told what happens in a run, besides its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paretoda.tasks.classification.inputs import Told
from paretoda.training.loop import After


@dataclass(frozen=True, eq=False)
class Callbacks:
    """Who is told what happens, besides the steps.

    Args:
        say: sentences for the user, as they come up.
        told: progress of long jobs other than training.
        reference: called after every step of the source-only reference.
    """

    say: Callable[[str], None] | None = None
    told: Told | None = None
    reference: Sequence[After] = ()

    def hear(self, sentence: str) -> None:
        """Say it to whoever listens."""
        if self.say is not None:
            self.say(sentence)


NO_CALLBACKS = Callbacks()
