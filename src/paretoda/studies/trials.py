"""Runs that a benchmark cannot make, because something is watched or changed inside them; kept like a benchmark's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretoda.bench.jobs import How, missing, results
from paretoda.bench.runner import make
from paretoda.bench.store import Row, Store
from paretoda.job.settings import make_settings
from paretoda.studies.ask import Ask

if TYPE_CHECKING:
    from paretoda.training.loop import After


@dataclass(frozen=True)
class Trial:
    """One run of a study: everything that decides its result.

    Args:
        suite: name of the suite.
        task: its name in the suite.
        name: of the line or point that it belongs to.
        seed: of the run.
        settings: that differ from the defaults.
        extra: what the study changes that no setting can say.
    """

    suite: str
    task: str
    name: str
    seed: int
    settings: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Of what decides the result, so not of the name."""
        facts = [self.suite, self.task, self.seed, self.settings, self.extra]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def line(self) -> Row:
        """What its result says of it."""
        return {"key": self.key, **asdict(self)}

    @property
    def steps(self) -> int:
        """How much of the progress it is."""
        return make_settings(self.settings).steps


Measure = Callable[[Trial, "Path | None", Path, "Sequence[After]"], Row]
"""A function of a module: takes a trial, the data's folder, one for unpacked archives, hooks; gives numbers."""


def run_trials(ask: Ask, trials: Sequence[Trial], measure: Measure) -> list[Row]:
    """Make the trials without a result and return all results in the order of the trials, under their names.

    Args:
        ask: directory, data, jobs, whom to tell.
        trials: all.
        measure: makes one.
    """
    store = Store(ask.directory)
    with store.held():
        how = How(partial(_line, measure), ask.folder(), ask.directory / "data")
        make(store, missing(store.read(), trials), how, ask.jobs, ask.tell)
    return results(store.read(), trials)


def _line(measure: Measure, trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    return {**trial.line, **measure(trial, data, work, after)}
