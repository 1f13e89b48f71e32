"""One run of a benchmark, from its specification to its line in the store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch

from paretoda.bench.baselines import BASELINES
from paretoda.bench.candidates import CandidateRecorder
from paretoda.bench.contenders import ONLY_SOURCE, ORACLE, RunSpec, drop_keys, run_folder
from paretoda.bench.loading import complete_settings, load_task
from paretoda.bench.store import Row, describe_result
from paretoda.bench.suites import find_suite
from paretoda.data.pair import Part
from paretoda.errors import DataError
from paretoda.run.build import pick_device
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import read_versions
from paretoda.run.engine import execute
from paretoda.run.finish import choose_validators
from paretoda.run.start import RunRequest
from paretoda.run.task import BenchData, Task
from paretoda.tasks import find_task
from paretoda.tasks.classification.evaluation import OracleSamples, measure_probabilities
from paretoda.tasks.settings import make_settings
from paretoda.training.loop import After
from paretoda.types import Progress

_MOST_NUMBERS = 10_000
"""Largest size of a sample that a shallow baseline reads."""
_AT_ONCE = 256
SOURCE_ONLY = "source-only"
"""Setting `from_run` of a row whose runs begin with a model of the source alone, trained first with the same seed."""
SHARED = "shared"
"""Folder in the directory of a bench with what several of its runs would compute alike."""
_WHOLE: tuple[Part, Part] = ("all-source", "all-target")


def execute_run(
    spec: RunSpec, data: Path | None, work: Path, after: Sequence[After] = (), progress: Progress | None = None
) -> Row:
    """Make a run and return its line; the target's labels decide nothing in it.

    Args:
        spec: Specification of the run.
        data: Folder of the suites' files.
        work: Folder for unpacked archives.
        after: Hooks that are called after every step.
        progress: Called with the progress of other long work, such as the features of a frozen backbone.
    """
    start = perf_counter()
    given = drop_keys(spec.settings)
    suite = find_suite(spec.suite)
    oracle = bool(spec.settings.get(ORACLE))
    loaded = load_suite_task(spec.suite, spec.task, data, work, bool(given.get("skip_bad")), oracle, spec.seed)
    loaded = keep_source(loaded, spec.settings.get(ONLY_SOURCE))
    task = find_task(suite.task).with_shared_folder(work.parent / SHARED)
    if "baseline" in given:
        own = complete_settings(suite.tasks[spec.task], data, work)
        found = _run_baseline(given["baseline"], loaded, own, Callbacks(progress=progress))
        scoring = 0.0
    else:
        own = complete_settings(suite.tasks[spec.task], data, work, given)
        settings = {"reference": False, "task": suite.task, **own, "seed": spec.seed}
        out = run_folder(work.parent, spec) if spec.keep else None
        with TemporaryDirectory() as folder:
            if settings.get("from_run") == SOURCE_ONLY:
                settings, loaded = _train_given_run(task, settings, given, loaded, Path(folder) / "given")
            recorder = CandidateRecorder(task, loaded, choose_validators(task, make_settings(settings)))
            callbacks = Callbacks(progress=progress, candidate=recorder)
            run = execute(_make_request(loaded, settings, out), make_settings, lambda _: task, after, callbacks)
        found = {**task.measure(run, loaded), **describe_result(run), "candidates": recorder.rows()}
        scoring = recorder.seconds
    seconds = round(perf_counter() - start - scoring, 3)
    return {**spec.line, **found, "seconds": seconds, "versions": read_versions()}


def keep_source(loaded: BenchData, number: int | None) -> BenchData:
    """Return the data with one of several sources alone.

    Args:
        loaded: Data of the task.
        number: Number of the source, from 1; None: all of them.

    Raises:
        DataError: The task has no such source.
    """
    if number is None:
        return loaded
    sources = loaded.source if isinstance(loaded.source, list) else [loaded.source]
    if number not in range(1, len(sources) + 1):
        raise DataError(f"{ONLY_SOURCE} is {number!r}, and this task has {len(sources)}; give a number from 1 on")
    return replace(loaded, source=sources[number - 1])


def _make_request(loaded: BenchData, settings: Mapping[str, Any], out: Path | None) -> RunRequest:
    return RunRequest(
        source=loaded.source,
        target=loaded.target,
        target_labels=loaded.target_labels,
        out=out,
        resume=False,
        overwrite=True,
        settings=settings,
    )


def _train_given_run(
    task: Task[Any, Any], settings: Mapping[str, Any], given: Mapping[str, Any], loaded: BenchData, out: Path
) -> tuple[dict[str, Any], BenchData]:
    """Train a model of the source alone, and return settings and data of the run that begins with it.

    Args:
        task: Task of the runs.
        settings: Settings of the run with those of the suite, which say how the first network reads the data.
        given: Settings of the row; they are those of the second run.
        loaded: Data of the task.
        out: Directory of the first run.
    """
    network = {name: value for name, value in settings.items() if name not in given}
    first = {**network, "method": "source-only", "target_loss": "none"}
    source = replace(loaded, target=None, target_labels=None)
    execute(_make_request(source, first, out), make_settings, lambda _: task, (), NO_CALLBACKS)
    kept = {name: value for name, value in network.items() if name not in (task.kept_settings or ())}
    return {**kept, **given, "from_run": str(out)}, replace(loaded, source=None)


def load_suite_task(
    suite: str,
    task: str,
    data: Path | None,
    work: Path,
    skip_bad: bool = False,
    oracle: bool = False,
    seed: int = 0,
) -> BenchData:
    """Read the data of a suite's task, which stay in memory for the next runs on it.

    Args:
        suite: Name of the suite.
        task: Name of the task in the suite.
        data: Folder of the suites' files; None if everything is embedded.
        work: Folder for archives that must be unpacked.
        skip_bad: Whether unreadable images are left out.
        oracle: Whether the labelled target takes the place of the source.
        seed: Seed that labelled samples of the target are drawn with, where the task has some.
    """
    found = find_suite(suite).tasks[task]
    return _load(suite, task, data, work, skip_bad, oracle, seed if found.labels else 0)


@lru_cache(maxsize=2)
def _load(suite: str, task: str, data: Path | None, work: Path, skip_bad: bool, oracle: bool, seed: int) -> BenchData:
    found = find_suite(suite)
    return load_task(find_task(found.task), found.tasks[task], data, work, skip_bad=skip_bad, oracle=oracle, seed=seed)


def _run_baseline(kind: str, loaded: BenchData, own: dict[str, Any], callbacks: Callbacks = NO_CALLBACKS) -> Row:
    """Run a shallow baseline, which reads features or small images.

    Args:
        kind: Name of the baseline.
        loaded: Data of the task.
        own: Settings of the suite's task.
        callbacks: Receive the progress.
    """
    if not isinstance(loaded.test, OracleSamples):
        raise DataError("shallow baselines are for classification suites; leave out --baselines")
    settings = make_settings({**own, "scaling": "none", "components": 0})  # it scales and reduces features itself
    task = find_task(settings.task)
    pair = task.open(settings, loaded.source, loaded.target, pick_device("cpu"), callbacks).pair
    if (size := math.prod(pair.input_shape)) > _MOST_NUMBERS:
        raise DataError(f"the baseline {kind!r} reads features or small images, not {size} numbers; leave it out")
    rows = [torch.cat(list(pair.inputs(part, _AT_ONCE))).numpy() for part in _WHOLE]
    probabilities = BASELINES[kind](rows[0], pair.labels, rows[1], len(pair.classes))
    found = measure_probabilities({"chosen": probabilities, "last": probabilities}, loaded.test)
    return {**found, "selection": "none"}
