"""Runs that a benchmark cannot make, because something is watched or changed inside them; kept like a benchmark's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretoda.bench.jobs import How
from paretoda.bench.runner import make
from paretoda.bench.store import Row, Store, results
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
        done = {row["key"] for row in store.read() if "error" not in row}
        missing = list({trial.key: trial for trial in trials if trial.key not in done}.values())
        make(store, missing, How(partial(_line, measure), ask.folder(), ask.directory / "data"), ask.jobs, ask.tell)
    found = results(store.read(), [trial.key for trial in trials])
    names = {trial.key: trial.name for trial in trials}
    return [{**row, "name": names[row["key"]]} for row in found]


def _line(measure: Measure, trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    return {**trial.line, **measure(trial, data, work, after)}


def failures(rows: Sequence[Row]) -> list[str]:
    """One sentence for each run without a result."""
    return [f"{row['task']}, {row['name']}, seed {row['seed']}: {row['error']}" for row in rows if "error" in row]
