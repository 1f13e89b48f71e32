"""A validator scores a model without a target label; higher is better."""

from __future__ import annotations

from typing import Protocol

from paretoda.domains import Snapshot


class Validator(Protocol):
    """A frozen dataclass: its fields are its settings, and the same snapshot always gets the same score.

    Scores are finite, also for one sample, for saturated and for collapsed predictions. All read `snapshot.target`, the
    training part; `dataclasses.replace(snapshot, target=snapshot.held_out_target)` scores the held-out part instead.
    """

    def __call__(self, snapshot: Snapshot, /) -> float:
        """The score of the model that made the snapshot."""
        ...
