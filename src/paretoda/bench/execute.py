"""One run of a benchmark, from its specification to the line that is kept of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.api import adapt
from paretoda.bench.baselines import BASELINES
from paretoda.bench.contenders import ORACLE, RunSpec, run_folder, without_oracle
from paretoda.bench.loading import Loaded, load
from paretoda.bench.scenes import execute_segmentation_run
from paretoda.bench.store import Row, run_line
from paretoda.bench.suites import find_suite
from paretoda.data.pair import Part
from paretoda.errors import DataError
from paretoda.evaluation.metrics import per_class_recall
from paretoda.evaluation.oracle import oracle_accuracy, oracle_mean_per_class
from paretoda.run.directory.directory import environment
from paretoda.run.settings import make_settings
from paretoda.tasks.classification.build import pick_device
from paretoda.tasks.classification.inputs import open_inputs
from paretoda.tasks.classification.run import Run
from paretoda.training.loop import After

_MOST_NUMBERS = 10_000
"""Of one sample that a shallow baseline reads."""
_AT_ONCE = 256
_WHOLE: tuple[Part, Part] = ("all-source", "all-target")


def execute_run(spec: RunSpec, data: Path | None, work: Path, after: Sequence[After] = ()) -> Row:
    """Run it; the target's labels are used when everything is over.

    Args:
        spec: of the run.
        data: folder of the suites' files.
        work: folder for unpacked archives.
        after: called after every step.
    """
    begun = perf_counter()
    given = without_oracle(spec.settings)
    out = run_folder(work.parent, spec) if spec.keep else None
    if find_suite(spec.suite).kind == "segmentation":
        found = execute_segmentation_run(spec, given, data, out, after)
        return {**spec.line, **found, "seconds": round(perf_counter() - begun, 3), "versions": environment()}
    if spec.settings.get(ORACLE):
        raise DataError("a contender with `oracle` is for segmentation suites; leave it out")
    loaded = _load(spec.suite, spec.task, data, work, bool(given.get("skip_bad")))
    if "baseline" in given:
        found = _baseline(given["baseline"], loaded)
    else:
        settings = {"reference": False, **loaded.settings, **given, "seed": spec.seed}
        run = adapt(loaded.source, loaded.target, out, overwrite=True, after=after, **settings)
        found = _measured(run, loaded)
    seconds = round(perf_counter() - begun, 3)
    return {**spec.line, **found, "seconds": seconds, "versions": environment()}


@lru_cache(maxsize=2)
def _load(suite: str, task: str, data: Path | None, work: Path, skip_bad: bool) -> Loaded:
    return load(find_suite(suite).tasks[task], data, work, skip_bad=skip_bad)


def _measured(run: Run, loaded: Loaded) -> Row:
    if run.classes != loaded.classes:
        raise DataError(f"the model's classes {run.classes} are not the source's {loaded.classes}")
    return {
        **measures(
            {kind: model.probabilities(loaded.samples) for kind, model in (("chosen", run.model), ("last", run.last))},
            loaded,
        ),
        **run_line(run),
    }


def _baseline(kind: str, loaded: Loaded) -> Row:
    settings = make_settings({**loaded.settings, "scaling": "none"})
    pair = open_inputs(settings, loaded.source, loaded.target, pick_device("cpu"), lambda _note: None).pair
    if (size := math.prod(pair.input_shape)) > _MOST_NUMBERS:
        raise DataError(f"the baseline {kind!r} reads features or small images, not {size} numbers; leave it out")
    rows = [torch.cat(list(pair.inputs(part, _AT_ONCE))).numpy() for part in _WHOLE]
    probabilities = BASELINES[kind](rows[0], pair.labels, rows[1], len(pair.classes))
    return {**measures({"chosen": probabilities, "last": probabilities}, loaded), "selection": "none"}


def measures(probabilities: Mapping[str, NDArray[Any]], loaded: Loaded) -> Row:
    """Measure -> kind of model -> value, by the target's labels.

    Args:
        probabilities: kind -> of `loaded.samples`, shape (n, K).
        loaded: the task's data.
    """
    found: Row = {"accuracy": {}, "mean_class_accuracy": {}, "per_class": {}}
    for kind, values in probabilities.items():
        for name, value in oracle(values, loaded.oracle_labels).items():
            found[name][kind] = value
        predicted = torch.from_numpy(np.asarray(values)).argmax(dim=1)
        recalls = per_class_recall(predicted, torch.from_numpy(loaded.oracle_labels), len(loaded.classes))
        found["per_class"][kind] = {loaded.classes[place]: recall for place, recall in recalls.items()}
    return found


def oracle(probabilities: NDArray[Any], labels: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy and its mean over classes, by the target's labels."""
    scores, truth = torch.from_numpy(np.asarray(probabilities)), torch.from_numpy(labels)
    return {"accuracy": oracle_accuracy(scores, truth), "mean_class_accuracy": oracle_mean_per_class(scores, truth)}
