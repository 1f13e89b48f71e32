"""One run of a segmentation benchmark: its scenes, the run, and the IoU of every class on the test images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.api import segment
from paretoda.bench.contenders import ORACLE, RunSpec
from paretoda.bench.loading import DRAWN, read_arrays
from paretoda.bench.store import Row, describe_result
from paretoda.bench.suites import Part, find_suite
from paretoda.data.drawn.streets import DRIVING_CLASSES, driving_scenes
from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import DataError
from paretoda.tasks.segmentation.run import SceneRun, measured
from paretoda.training.loop import After

_TALL, _WIDE = 120, 160
_CUT = 40
"""Rows that are cut off at the top or bottom of a taller drawing."""


def execute_segmentation_run(
    spec: RunSpec, given: Mapping[str, Any], data: Path | None, out: Path | None, after: Sequence[After]
) -> Row:
    """Make a run and return its results; the labels of the test images are used only after the training.

    Args:
        spec: Specification of the run.
        given: Settings of the run.
        data: Folder of the suites' files.
        out: Directory for the files of the run; None if they are not kept.
        after: Hooks that are called after every step.
    """
    task = find_suite(spec.suite).tasks[spec.task]
    if "baseline" in given:
        raise DataError("shallow baselines are for classification suites; leave out --baselines")
    assert task.test is not None  # every task of a segmentation suite has one
    target = load_scenes(task.target, data)
    source = target if spec.settings.get(ORACLE) else load_scenes(task.source, data)
    settings = {"reference": False, **task.settings, **given, "seed": spec.seed}
    run = segment(source, target.without_labels(), out, overwrite=True, after=after, **settings)
    return _measure_run(run, load_scenes(task.test, data))


def _measure_run(run: SceneRun, test: SceneSamples) -> Row:
    if run.classes != test.classes:
        raise DataError(f"the model's classes {run.classes} are not those of the test images, {test.classes}")
    row: Row = {"miou": {}, "accuracy": {}, "per_class": {}}
    chosen = measured(run.model, test).scores
    last = chosen if run.chosen == run.settings.steps else measured(run.last, test).scores
    for kind, scores in (("chosen", chosen), ("last", last)):
        row["miou"][kind], row["accuracy"][kind] = scores.miou, scores.accuracy
        pairs = zip(run.classes, scores.iou, strict=True)
        row["per_class"][kind] = {name: None if np.isnan(value) else value for name, value in pairs}
    return row | describe_result(run)


@lru_cache(maxsize=8)
def load_scenes(part: Part, data: Path | None) -> SceneSamples:
    """Return the scenes of a part with labels: drawn ones, .npz files joined by plus signs, or a folder."""
    if part.path.startswith(DRAWN):
        return _draw_scenes(part)
    if data is None:
        raise DataError("this suite needs files; name their folder with --data or $PARETODA_DATA")
    paths = [data / name for name in part.path.split("+")]
    if missing := [path for path in paths if not path.exists()]:
        raise DataError(f"{missing[0]} is missing; name the folder of the suite's files with --data")
    if paths[0].suffix != ".npz":
        return open_scenes(paths[0], labelled=True)
    files = [read_arrays(path) for path in paths]
    x, y = (np.concatenate([file[name] for file in files]) for name in ("x", "y"))
    return open_scenes((x, y, files[0]["classes"].tolist()), labelled=True)


def _draw_scenes(part: Part) -> SceneSamples:
    """Draw the streets of driving/GAP/SEED, 160x120; for driving/GAP/SEED/up or /down, with a tilted camera."""
    gap, seed, *tilt = part.path.removeprefix(DRAWN).split("/")
    rows = {(): slice(None), ("up",): slice(None, _TALL), ("down",): slice(-_TALL, None)}[tuple(tilt)]
    size = (_TALL + (_CUT if tilt else 0), _WIDE)
    x, y = driving_scenes(part.take or 500, seed=int(seed), gap=float(gap), size=size)
    return open_scenes((x[:, rows], y[:, rows], list(DRIVING_CLASSES)), labelled=True)
