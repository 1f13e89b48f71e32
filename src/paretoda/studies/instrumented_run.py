"""Runs that can be watched and changed from inside, with the target's labels at hand: for analysis only."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from paretoda.bench.jobs import Execution, collect_results, find_missing
from paretoda.bench.loading import complete_settings, load_task
from paretoda.bench.runner import run_jobs
from paretoda.bench.store import Row, Store
from paretoda.bench.suites import find_suite
from paretoda.data import DomainPair
from paretoda.data.pair import Part
from paretoda.errors import DataError
from paretoda.evaluation.oracle import oracle_accuracy
from paretoda.evaluation.predictions import predict
from paretoda.run.build import build_step, pick_device
from paretoda.run.settings import Settings
from paretoda.run.train import Trained, train
from paretoda.studies.request import StudyRequest
from paretoda.tasks import find_task
from paretoda.tasks.settings import make_settings
from paretoda.training.loop import After
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step
from paretoda.types import Domain, Objective, Snapshot

if TYPE_CHECKING:
    from paretoda.training.loop import After

Of = TypeVar("Of", bound=Domain)

_MOST = 2000
"""Samples of a domain on which losses are measured; always the same ones."""


@dataclass(frozen=True, eq=False)
class InstrumentedRun:
    """A run before its first step.

    Args:
        settings: of the run.
        pair: the data.
        oracle_labels: of all target samples in order, shape (n,).
        step: as the settings say; a study may change it.
    """

    settings: Settings
    pair: DomainPair
    oracle_labels: Tensor
    step: Step

    def oracle_labels_of(self, part: Part) -> Tensor:
        """The target's labels of a part, in its order."""
        return self.oracle_labels[torch.from_numpy(self.pair.positions(part))]

    def snapshot(self) -> Snapshot:
        """The whole sets as the model sees them now."""
        return take_snapshot(self.pair, self.step.model, self.step.device)

    def oracle_accuracy(self) -> float:
        """On all target samples, now."""
        _, logits = predict(self.step.model, self.pair.inputs("all-target", 256), device=self.step.device)
        return oracle_accuracy(logits, self.oracle_labels)

    def train(self, after: Sequence[After]) -> Trained:
        """Take all steps."""
        return train(self.settings, self.pair, self.step, after=after)


def open_instrumented_run(trial: Trial, data: Path | None, work: Path) -> InstrumentedRun:
    """The trial's data and networks, at the beginning.

    Args:
        trial: which.
        data: folder of the suite's files.
        work: folder for unpacked archives.
    """
    suite_task = find_suite(trial.suite).tasks[trial.task]
    own = complete_settings(suite_task, data, work)
    settings = make_settings({**own, **trial.settings, "seed": trial.seed})
    task = find_task(settings.task)
    loaded = load_task(task, suite_task, data, work)
    device = pick_device(settings.device)
    inputs = task.open(settings, loaded.source, loaded.target, device)
    labels = torch.from_numpy(loaded.test.oracle_labels)
    if len(labels) != len(inputs.pair.positions("all-target")):
        raise DataError("the target has another number of samples than labels")
    return InstrumentedRun(settings, inputs.pair, labels, build_step(task, settings, inputs.pair, device))


def measure_losses(step: Step, snapshot: Snapshot) -> dict[str, float]:
    """Every objective on fixed samples of the training parts, in evaluation mode and at full strength."""
    source, target = subsample(snapshot.source), subsample(snapshot.target)
    with torch.no_grad():
        return {name: float(copy_at_full_strength(part)(source, target)) for name, part in step.objectives.items()}


def copy_at_full_strength(objective: Objective) -> Objective:
    """A copy of the objective as it is at the end of its schedules, in evaluation mode, on the CPU."""
    twin = copy.deepcopy(objective).cpu().eval()
    twin.advance(1.0)
    return twin


def subsample(domain: Of, most: int = _MOST) -> Of:
    """The same, at most so many samples: drawn at random, always the same ones."""
    if len(domain.features) <= most:
        return domain
    chosen = torch.randperm(len(domain.features), generator=torch.Generator().manual_seed(0))[:most]
    names = [name for name in ("features", "logits", "index", "labels") if hasattr(domain, name)]
    fields = {name: getattr(domain, name)[chosen] for name in names}
    return replace(domain, **fields)


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


def run_trials(ask: StudyRequest, trials: Sequence[Trial], measure: Measure) -> list[Row]:
    """Make the trials without a result and return all results in the order of the trials, under their names.

    Args:
        ask: directory, data, jobs, whom to tell.
        trials: all.
        measure: makes one.
    """
    store = Store(ask.directory)
    with store.lock():
        how = Execution(partial(_line, measure), ask.folder(), ask.directory / "data")
        run_jobs(store, find_missing(store.read(), trials), how, ask.jobs, ask.tell)
    return collect_results(store.read(), trials)


def _line(measure: Measure, trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    return {**trial.line, **measure(trial, data, work, after)}
