"""One run of a segmentation benchmark: its scenes, the run, and the overlap of classes on the test images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.api import segment
from paretoda.bench.contenders import ORACLE, RunSpec
from paretoda.bench.loading import DRAWN, read_arrays
from paretoda.bench.store import Row, run_line
from paretoda.bench.suites import Part, find_suite
from paretoda.data.drawn.streets import DRIVING_CLASSES, draw_driving_scenes
from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import DataError
from paretoda.tasks.segmentation.run import SceneRun, measured
from paretoda.training.loop import After

_TALL, _WIDE = 120, 160
_AWAY = 40
"""Rows of a taller drawing that are cut away at its top or bottom."""


def execute_segmentation_run(
    spec: RunSpec, given: Mapping[str, Any], data: Path | None, out: Path | None, after: Sequence[After]
) -> Row:
    """Run it; the labels of the test images are used when everything is over.

    Args:
        spec: of the run.
        given: its settings.
        data: folder of the suites' files.
        out: for the run's own files; None: they are not kept.
        after: called after every step.
    """
    task = find_suite(spec.suite).tasks[spec.task]
    if "baseline" in given:
        raise DataError("shallow baselines are for classification suites; leave out --baselines")
    assert task.test is not None  # every task of a segmentation suite has one
    target = load_scenes(task.target, data)
    source = target if spec.settings.get(ORACLE) else load_scenes(task.source, data)
    settings = {"reference": False, **task.settings, **given, "seed": spec.seed}
    run = segment(source, target.without_labels(), out, overwrite=True, after=after, **settings)
    return _measured(run, load_scenes(task.test, data))


def _measured(run: SceneRun, test: SceneSamples) -> Row:
    if run.classes != test.classes:
        raise DataError(f"the model's classes {run.classes} are not those of the test images, {test.classes}")
    row: Row = {"miou": {}, "accuracy": {}, "per_class": {}}
    chosen = measured(run.model, test).scores
    last = chosen if run.chosen == run.settings.steps else measured(run.last, test).scores
    for kind, scores in (("chosen", chosen), ("last", last)):
        row["miou"][kind], row["accuracy"][kind] = scores.miou, scores.accuracy
        pairs = zip(run.classes, scores.iou, strict=True)
        row["per_class"][kind] = {name: None if np.isnan(value) else value for name, value in pairs}
    return row | run_line(run)


@lru_cache(maxsize=8)
def load_scenes(part: Part, data: Path | None) -> SceneSamples:
    """The scenes of a part, with labels: drawn ones, .npz files with plus signs between them, or a folder."""
    if part.path.startswith(DRAWN):
        return _drawn(part)
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


def _drawn(part: Part) -> SceneSamples:
    """Streets at driving/GAP/SEED, 160x120; at driving/GAP/SEED/up or /down the camera looks there."""
    gap, seed, *look = part.path.removeprefix(DRAWN).split("/")
    rows = {(): slice(None), ("up",): slice(None, _TALL), ("down",): slice(-_TALL, None)}[tuple(look)]
    size = (_TALL + (_AWAY if look else 0), _WIDE)
    x, y = draw_driving_scenes(part.take or 500, seed=int(seed), gap=float(gap), size=size)
    return open_scenes((x[:, rows], y[:, rows], list(DRIVING_CLASSES)), labelled=True)
