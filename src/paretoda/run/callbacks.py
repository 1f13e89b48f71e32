"""Callbacks of a run: functions that receive its sentences and its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paretoda.training.loop import After
from paretoda.types import Progress


@dataclass(frozen=True, eq=False)
class Callbacks:
    """Functions that a run calls while it works.

    Args:
        say: Called with sentences for the user, as they come up.
        progress: Called with the progress of long jobs other than training.
        reference: Hooks that are called after every step of the source-only reference.

    Example:
        >>> heard = []
        >>> Callbacks(say=heard.append).notify("The target has 40 samples.")
        >>> heard
        ['The target has 40 samples.']
    """

    say: Callable[[str], None] | None = None
    progress: Progress | None = None
    reference: Sequence[After] = ()

    def notify(self, sentence: str) -> None:
        """Pass a sentence on to `say`, if there is one."""
        if self.say is not None:
            self.say(sentence)


NO_CALLBACKS = Callbacks()
