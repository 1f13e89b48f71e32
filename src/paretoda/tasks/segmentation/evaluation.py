"""Predictions of a segmenter for users and benchmarks: label maps as files, and overlaps with labels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.core.options import unknown
from paretoda.data.labels import shorten_names
from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import DataError, RunError
from paretoda.io.files import write_text
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.tables import predictions_table
from paretoda.run.result import Run
from paretoda.run.task import BenchData, Outcome, PredictOptions
from paretoda.tasks.segmentation.map_files import write_maps
from paretoda.tasks.segmentation.predictor import SegmentationPredictor
from paretoda.tasks.segmentation.results import measure_maps

_MOST_FREQUENT = 5


def predict_data(
    predictor: SegmentationPredictor, data: str, out: Path | None, options: PredictOptions, callbacks: Callbacks
) -> Outcome:
    """Write a label map and an overlay for every image as PNG, and predictions.csv.

    Args:
        predictor: Predictor of a finished run.
        data: Images.
        out: Folder for the files.
        options: Options of the user.
        callbacks: Hear notes and progress.

    Raises:
        RunError: There is no folder to write to, or an option makes no sense for pixels.
    """
    if options.abstain_below is not None:
        raise RunError("--abstain-below is for classification; a run of segmentation labels every pixel")
    if out is None:
        raise RunError("label maps are pictures: say where they go, with --out FOLDER")
    if out.is_file():
        raise RunError(f"{out} is a file; give a folder with --out")
    samples = _open(predictor, data, options, callbacks, labelled=False)
    scenes = predictor.scenes(samples, refined=options.refined)
    rows = write_maps(scenes, predictor, out, overlays=True, count=len(samples), progress=callbacks.progress)
    write_text(out / "predictions.csv", predictions_table(rows))
    counts = Counter(largest for _, largest, _ in rows)
    common = ", ".join(f"{name} {count}" for name, count in counts.most_common(_MOST_FREQUENT))

    def values() -> dict[str, Any]:
        facts = {"samples": len(rows), "refined": options.refined, "runs": options.runs, "out": str(out)}
        return facts | {"largest": dict(counts)}

    return Outcome(values, [f"{len(rows)} label maps and overlays are in {out}; largest classes: {common}."])


def evaluate_data(
    predictor: SegmentationPredictor, data: str, options: PredictOptions, callbacks: Callbacks
) -> Outcome:
    """Compute the IoU of every class over all images together, and its mean.

    Args:
        predictor: Predictor of a finished run.
        data: Images with label maps.
        options: Options of the user.
        callbacks: Hear notes and progress.

    Raises:
        RunError: The classes differ, or an option makes no sense for pixels.
    """
    if options.abstain_below is not None:
        raise RunError("--abstain-below measures classifications, not pixels; leave it out, or use it in predict")
    samples = _open(predictor, data, options, callbacks, labelled=True)
    chosen = predictor.classes if options.classes is None else _check_classes(options.classes, predictor.classes)
    found = measure_maps(predictor, samples, refined=options.refined, progress=callbacks.progress)
    scores = found.scores.over([predictor.classes.index(name) for name in chosen])
    lines = [
        f"Labels were used: the {len(samples)} images of {data} were compared with theirs.",
        f"{'mean IoU:':<20}{scores.miou:.4f} over {scores.counted} classes",
        f"{'pixel accuracy:':<20}{scores.accuracy:.4f}",
    ]
    rows = [
        [name, f"{number:,}", "neither there nor predicted" if np.isnan(value) else f"{value:.4f}"]
        for name, number, value in zip(predictor.classes, found.counts.sum(1).tolist(), scores.iou, strict=True)
    ]

    def values() -> dict[str, Any]:
        per_class = dict(zip(predictor.classes, scores.iou, strict=True))
        facts = {"used_labels": True, "miou": scores.miou, "accuracy": scores.accuracy, "per_class": per_class}
        facts |= {"classes": list(chosen), "classes_counted": scores.counted, "samples": len(samples)}
        return facts | {"refined": options.refined, "runs": options.runs}

    return Outcome(values, lines, {"class": "left", "pixels": "right", "IoU": "right"}, rows)


def _open(
    predictor: SegmentationPredictor, data: str, options: PredictOptions, callbacks: Callbacks, *, labelled: bool
) -> SceneSamples:
    samples = open_scenes(
        data, labelled=labelled, table=options.table, skip_bad=options.skip_bad, progress=callbacks.progress
    )
    for note in samples.notes:
        callbacks.notify(note)
    if labelled and samples.classes != predictor.classes:
        raise RunError(
            f"{data} has the classes {shorten_names(samples.classes)}, the model has "
            f"{shorten_names(predictor.classes)}; evaluate on labels of the model's classes, which classes.txt names "
            "beside plain images/ and labels/, or read them as such with --table NAME (`paretoda list tables`)"
        )
    return samples


def _check_classes(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the classes that the user wrote, each once."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in known:
            raise RunError(f"--classes: {unknown('class', name, known)}")
    if not chosen:
        raise RunError("--classes takes names of classes, with commas between them")
    return chosen


def open_benchmark(source: Any, target: Any, test: Any, *, skip_bad: bool) -> BenchData:
    """Open a benchmark's scenes; without a source, the labelled target takes its place (an oracle).

    Args:
        source: Labelled scenes: a folder or arrays (x, y, classes); None: the target.
        target: Labelled scenes in the same forms; its labels are used by an oracle alone.
        test: Labelled scenes to measure on.
        skip_bad: Leave out images that cannot be read.
    """
    labelled = open_scenes(target, labelled=True, skip_bad=skip_bad)
    given = labelled if source is None else open_scenes(source, labelled=True, skip_bad=skip_bad)
    return BenchData(given, labelled.without_labels(), open_scenes(test, labelled=True, skip_bad=skip_bad))


def measure(run: Run, data: BenchData) -> dict[str, Any]:
    """Measure the chosen and the last model on the test scenes: measure -> kind of model -> value.

    Raises:
        DataError: The test scenes have other classes than the model.
    """
    test: SceneSamples = data.test
    if run.classes != test.classes:
        raise DataError(f"the model's classes {run.classes} are not those of the test images, {test.classes}")
    row: dict[str, Any] = {"miou": {}, "accuracy": {}, "per_class": {}}
    chosen = measure_maps(run.model, test).scores
    last = chosen if run.chosen == run.settings.steps else measure_maps(run.last, test).scores
    for kind, scores in (("chosen", chosen), ("last", last)):
        row["miou"][kind], row["accuracy"][kind] = scores.miou, scores.accuracy
        pairs = zip(run.classes, scores.iou, strict=True)
        row["per_class"][kind] = {name: None if np.isnan(value) else value for name, value in pairs}
    return row
