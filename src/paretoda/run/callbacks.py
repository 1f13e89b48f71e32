"""Callbacks of a run: functions that receive its sentences, its progress and its candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from paretoda.data.pair import Pair
from paretoda.training.loop import After
from paretoda.types import Progress, Snapshot

OnCandidate: TypeAlias = Callable[[int, Snapshot, Pair, Mapping[str, float]], None]
"""Called with the steps taken so far, the model on the whole sets, the data, and the scores that are known."""


@dataclass(frozen=True, eq=False)
class Callbacks:
    """Functions that a run calls while it works.

    Args:
        say: Called with sentences for the user, as they come up.
        progress: Called with the progress of long jobs other than training.
        reference: Hooks that are called after every step of the source-only reference.
        candidate: Called for every candidate that is scored; a candidate that is not, under the rule "last", has no
            snapshot.

    Example:
        >>> heard = []
        >>> Callbacks(say=heard.append).notify("The target has 40 samples.")
        >>> heard
        ['The target has 40 samples.']
    """

    say: Callable[[str], None] | None = None
    progress: Progress | None = None
    reference: Sequence[After] = ()
    candidate: OnCandidate | None = None

    def notify(self, sentence: str) -> None:
        """Pass a sentence on to `say`, if there is one."""
        if self.say is not None:
            self.say(sentence)


NO_CALLBACKS = Callbacks()
