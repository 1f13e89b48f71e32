"""Runs that can be observed and changed from inside, with the target's labels at hand: for analysis only."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from paretoda.bench.execute import load_suite_task
from paretoda.bench.jobs import Execution, collect_results, find_missing
from paretoda.bench.loading import complete_settings
from paretoda.bench.request import find_task_data
from paretoda.bench.runner import run_jobs
from paretoda.bench.store import Row, Store
from paretoda.bench.suites import find_suite
from paretoda.data import DomainPair
from paretoda.data.pair import Part
from paretoda.errors import DataError
from paretoda.evaluation.oracle import oracle_accuracy
from paretoda.evaluation.predictions import predict
from paretoda.models.backbones.user_module import consent
from paretoda.run.backbone_choice import resolve_backbone
from paretoda.run.build import build_step, pick_device
from paretoda.run.callbacks import Callbacks
from paretoda.run.settings import Settings
from paretoda.run.start import use_deterministic_algorithms
from paretoda.run.threads import limit_threads
from paretoda.run.train import Trained, train
from paretoda.studies.request import StudyRequest
from paretoda.studies.settings import check_runs, merge_settings, refuse_other_networks, refuse_without_effect
from paretoda.tasks import find_task
from paretoda.tasks.settings import make_settings
from paretoda.training.loop import After
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step
from paretoda.types import Domain, Objective, Progress, Snapshot

Of = TypeVar("Of", bound=Domain)

_MOST = 2000
"""Number of samples of a domain on which losses are measured; always the same ones."""


@dataclass(frozen=True, eq=False)
class InstrumentedRun:
    """A run before its first step.

    Args:
        extra: What the study changes beyond the settings.
        settings: Settings of the run.
        pair: Source and target.
        oracle_labels: Labels of all target samples in order, shape (n,).
        step: Step that the settings describe; a study may change it.
    """

    extra: Mapping[str, Any]
    settings: Settings
    pair: DomainPair
    oracle_labels: Tensor
    step: Step

    def oracle_labels_of(self, part: Part) -> Tensor:
        """Return the target's labels of a part, in its order."""
        return self.oracle_labels[torch.from_numpy(self.pair.positions(part))]

    def snapshot(self) -> Snapshot:
        """Return the whole sets as the model sees them now."""
        return take_snapshot(self.pair, self.step.model, self.step.device)

    def oracle_accuracy(self) -> float:
        """Return the accuracy on all target samples, now."""
        _, logits = predict(self.step.model, self.pair.inputs("all-target", 256), device=self.step.device)
        return oracle_accuracy(logits, self.oracle_labels)

    def train(self, after: Sequence[After]) -> Trained:
        """Take all steps."""
        with limit_threads(self.pair.kind, self.settings.threads), use_deterministic_algorithms(self.settings):
            return train(self.settings, self.pair, self.step, after=after)


def open_instrumented_run(
    trial: Trial, data: Path | None, work: Path, progress: Progress | None = None
) -> InstrumentedRun:
    """Return the trial's data and networks, at the beginning.

    Args:
        trial: The trial.
        data: Folder of the suite's files.
        work: Folder for unpacked archives.
        progress: Called with the progress of long work, such as the features of a frozen backbone.

    Raises:
        DataError: The numbers of target samples and labels differ.
    """
    own = complete_settings(find_suite(trial.suite).tasks[trial.task], data, work, trial.settings)
    settings = make_settings({**own, "seed": trial.seed})
    consent(settings.backbone)
    settings = resolve_backbone(settings)
    task = find_task(settings.task)
    loaded = load_suite_task(trial.suite, trial.task, data, work, settings.skip_bad)
    device = pick_device(settings.device)
    inputs = task.open(settings, loaded.source, loaded.target, device, Callbacks(progress=progress))
    labels = torch.from_numpy(loaded.test.oracle_labels)
    if len(labels) != len(inputs.pair.positions("all-target")):
        raise DataError("the target has another number of samples than labels")
    step = build_step(task, settings, inputs.pair, device)
    return InstrumentedRun(trial.extra, settings, inputs.pair, labels, step)


def measure_losses(step: Step, snapshot: Snapshot) -> dict[str, float]:
    """Return every objective on fixed samples of the training parts, in evaluation mode and at full strength."""
    source, target = subsample(snapshot.source), subsample(snapshot.target)
    with torch.no_grad():
        return {name: float(copy_at_full_strength(part)(source, target)) for name, part in step.objectives.items()}


def copy_at_full_strength(objective: Objective) -> Objective:
    """Return a copy of the objective at the end of its schedules, in evaluation mode, on the CPU."""
    twin = copy.deepcopy(objective).cpu().eval()
    twin.advance(1.0)
    return twin


def subsample(domain: Of, most: int = _MOST) -> Of:
    """Return at most `most` samples of a domain: drawn at random, always the same ones."""
    if len(domain.features) <= most:
        return domain
    chosen = torch.randperm(len(domain.features), generator=torch.Generator().manual_seed(0))[:most]
    names = [name for name in ("features", "logits", "index", "labels") if hasattr(domain, name)]
    fields = {name: getattr(domain, name)[chosen] for name in names}
    return replace(domain, **fields)


@dataclass(frozen=True)
class Trial:
    """One run of a study: everything that determines its result.

    Args:
        suite: Name of the suite.
        task: Name of the task in the suite.
        name: Name of the line or point that it belongs to.
        seed: Seed of the run.
        settings: Settings that differ from the defaults.
        extra: What the study changes beyond the settings.
    """

    suite: str
    task: str
    name: str
    seed: int
    settings: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Hash of what determines the result, so not of the name."""
        facts = [self.suite, self.task, self.seed, self.settings, self.extra]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def line(self) -> Row:
        """What its result says about it."""
        return {"key": self.key, **asdict(self)}

    @property
    def steps(self) -> int:
        """Number of steps, its share of the progress."""
        return make_settings(self.settings).steps


Measure = Callable[[InstrumentedRun, "Sequence[After]"], Row]
"""A module-level function: trains a run with hooks that are called after every step; returns numbers."""


def run_trials(request: StudyRequest, trials: Sequence[Trial], measure: Measure, **default: Any) -> list[Row]:
    """Make the trials without a result and return all results in the order of the trials, under their names.

    Args:
        request: Settings, directory, data, jobs, and whom to report progress to.
        trials: All trials of one suite, with what the study sets itself.
        measure: Makes one trial.
        **default: Settings of the trials that the user may change.

    Raises:
        SettingsError: A setting of the user has no effect here, or contradicts another.
        DataError: Files are missing.
    """
    refuse_other_networks(request)
    refuse_without_effect(request, [trial.settings for trial in trials], [request.suite])
    tasks = list(dict.fromkeys(trial.task for trial in trials))
    data = find_task_data([find_suite(request.suite).tasks[task] for task in tasks], request.data)
    merged = [
        replace(trial, settings=merge_settings(request, trial.suite, trial.settings, default)) for trial in trials
    ]
    check_runs(request, request.suite, tasks, [trial.settings for trial in merged], data)
    store = Store(request.directory)
    with store.lock():
        execution = Execution(partial(_measure_trial, measure), data, request.directory / "data")
        run_jobs(store, find_missing(store.read(), merged), execution, request.jobs, request.tell)
    return collect_results(store.read(), merged)


def _measure_trial(
    measure: Measure,
    trial: Trial,
    data: Path | None,
    work: Path,
    after: Sequence[After],
    progress: Progress | None,
) -> Row:
    return {**trial.line, **measure(open_instrumented_run(trial, data, work, progress), after)}
