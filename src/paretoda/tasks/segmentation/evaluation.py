"""Predictions of a segmenter for users, reports and benchmarks: label maps, pictures, and overlaps with labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.core.options import name_some, unknown
from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import DataError, RunError
from paretoda.evaluation.overlap import Scores, confusion
from paretoda.io.files import write_text
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.label_maps import MapCard, Overlap, make_map_card, to_hex
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.tables import predictions_table
from paretoda.run.result import Run
from paretoda.run.task import BenchData, Outcome, PredictOptions
from paretoda.tasks.segmentation.inputs import SegmentationInputs
from paretoda.tasks.segmentation.map_files import write_maps
from paretoda.tasks.segmentation.predictor import SegmentationPredictor
from paretoda.types import Progress

SHOWN = 8
"""Number of images on a page."""
_HELD_OUT = 200
"""Largest number of source images that the page's table counts."""
_MOST_FREQUENT = 5


@dataclass(frozen=True)
class MapMeasures:
    """How good a model is on labelled images.

    Args:
        scores: Scores over all images together.
        counts: The pixel counts behind them, see `confusion`.
        confidences: The mean confidence of each image.
    """

    scores: Scores
    counts: torch.Tensor
    confidences: list[float]


def measure_maps(
    model: SegmentationPredictor,
    samples: SceneSamples,
    places: Sequence[int] | None = None,
    *,
    refined: bool = False,
    progress: Progress | None = None,
) -> MapMeasures:
    """Predict labelled images, each once, and compare the predictions with the labels.

    Args:
        model: Predictor of the images' classes.
        samples: Scenes with labels.
        places: Positions of the scenes; None: all.
        refined: Use the refined predictions ρ of Eq. 3.
        progress: Called after each image.
    """
    places = range(len(samples)) if places is None else places
    counts = torch.zeros(len(model.classes), len(model.classes) + 1, dtype=torch.int64)
    confidences = []
    scenes = model.scenes(samples, refined=refined, places=places)
    for done, (place, scene) in enumerate(zip(places, scenes, strict=True), start=1):
        truth = samples.read_labels([place])[0]
        counts += confusion(torch.from_numpy(truth), torch.from_numpy(scene.labels), len(model.classes))
        confidences.append(float(scene.confidence.mean()))
        if progress is not None:
            progress("comparing", done, len(places))
    return MapMeasures(Scores.of(counts), counts, confidences)


def make_overlap(model: SegmentationPredictor, scores: Scores, heading: str, *, oracle: bool) -> Overlap:
    """Return the scores for a page."""
    return Overlap(heading, model.classes, to_hex(model.colours), scores.iou, scores.miou, oracle)


def make_cards(model: SegmentationPredictor, samples: SceneSamples, confidences: Sequence[float]) -> list[MapCard]:
    """Return a few images with their maps, from the least to the most certain, with labels where there are some."""
    order = np.argsort(np.asarray(confidences), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int))]
    found = []
    for place, one in zip(chosen.tolist(), model.scenes(samples, places=chosen.tolist()), strict=True):
        truth = samples.read_labels([place])[0] if samples.labelled else None
        uncertain = (one.entropy, float(one.confidence.mean()))
        found.append(make_map_card(one.name, one.image, one.labels, uncertain, model.colours, truth))
    return found


def make_pictures(predictor: SegmentationPredictor, inputs: SegmentationInputs | None, facts: RunFacts) -> Pictures:
    """Return the pictures that need no label of the target: some scenes, and the overlap on the held-out source.

    Args:
        predictor: Predictor of the run.
        inputs: Data of the run; None where they cannot be opened any more.
        facts: Facts of the run, with its predictions.
    """
    if inputs is None:
        return NO_PICTURES
    target = inputs.pair.target.samples
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    held_out = inputs.pair.source_held_out[:_HELD_OUT].tolist()
    overlaps = []
    if held_out and inputs.has_source:
        found = measure_maps(for_source(predictor, inputs), inputs.pair.source.samples, held_out)
        overlaps = [make_overlap(predictor, found.scores, "held-out source", oracle=False)]
    confidences = [confidence for _, _, confidence in facts.predictions]
    return Pictures(map_cards=make_cards(predictor, target, confidences), overlaps=overlaps)


def add_oracle_pictures(
    pictures: Pictures, predictor: SegmentationPredictor, labelled: str, callbacks: Callbacks
) -> Pictures:
    """Show labelled images with their labels, and the overlap of classes on them."""
    samples = open_scenes(labelled, labelled=True)
    if samples.classes != predictor.classes:
        raise RunError(f"{labelled} has other classes than the model: {', '.join(samples.classes)}")
    found = measure_maps(predictor, samples, progress=callbacks.progress)
    oracle = make_overlap(predictor, found.scores, "target (oracle)", oracle=True)
    return replace(
        pictures, map_cards=make_cards(predictor, samples, found.confidences), overlaps=[oracle, *pictures.overlaps]
    )


def for_source(predictor: SegmentationPredictor, inputs: SegmentationInputs) -> SegmentationPredictor:
    """Return the same network for new images of the source, whose size may differ."""
    return replace(predictor, transform=replace(inputs.pair.source.transform, flip=False, scales=None, crop=None))


def predict_data(
    predictor: SegmentationPredictor, data: str, out: Path | None, options: PredictOptions, callbacks: Callbacks
) -> Outcome:
    """Write a label map and an overlay for every image as PNG, and predictions.csv.

    Args:
        predictor: Predictor of a finished run.
        data: Images.
        out: Folder for the files.
        options: Options of the user.
        callbacks: Receive notes and progress.

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
        callbacks: Receive notes and progress.

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
            f"{data} has the classes {name_some(samples.classes)}, the model has "
            f"{name_some(predictor.classes)}; evaluate on labels of the model's classes, which classes.txt names "
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
        raise RunError("--classes takes names of classes, separated by commas")
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
