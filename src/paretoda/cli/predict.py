"""`paretoda predict`: a finished run on new data."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preference, Quiet, RunPath, SkipBad, parse_numbers
from paretoda.errors import RunError
from paretoda.io.files import write_text

if TYPE_CHECKING:
    from paretoda.data.samples import Samples
    from paretoda.data.segmentation import SceneSamples
    from paretoda.tasks.classification.predictor import Predictor
    from paretoda.tasks.segmentation.predictor import ScenePredictor

Crops = Annotated[
    int | None,
    typer.Option(metavar="1|10", help="crops of each image, whose mean is the prediction (default: the run's)"),
]
Refined = Annotated[bool, typer.Option("--refined", help="use the refined prediction of a model trained with tcm")]
Calibrated = Annotated[
    bool, typer.Option("--calibrated", help="divide logits by the run's temperature: other confidences, same classes")
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="P", help="no answer where the confidence, calibrated if it can be, is below P"),
]
Others = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="RUN", help="another finished run; the mean of all predicts (may be repeated)"),
]

_MOST_FREQUENT = 5
"""Classes that are named after a prediction."""


@dataclass(frozen=True)
class PredictOptions:
    """How the user wants the predictions of `predict` and `evaluate`.

    Args:
        runs: Directories of the runs whose probabilities are averaged; usually one.
        refined: Whether the class-wise discriminators refine the predictions.
        crops: Number of crops of an image; None for that of the run.
        preference: What each loss counts, for a run of the scheme "hypernetwork"; None for the trained one.
        skip_bad: Whether images that cannot be read are left out.
        calibrated: Whether the temperature of the run is applied to the confidences.
        abstain_below: Lowest confidence that gets an answer; None if every sample gets one.
    """

    runs: tuple[Path, ...]
    refined: bool = False
    crops: int | None = None
    preference: str | None = None
    skip_bad: bool = False
    calibrated: bool = False
    abstain_below: float | None = None


def predict(  # noqa: PLR0913  (options, not arguments)
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="INPUT", help="target data without labels")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="instead of stdout; for segmentation, a folder for pictures")
    ] = None,
    others: Others = None,
    refined: Refined = False,
    calibrated: Calibrated = False,
    abstain_below: AbstainBelow = None,
    crops: Crops = None,
    preference: Preference = None,
    skip_bad: SkipBad = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the classes of new target data, as CSV; of a segmentation run, label maps and overlays as PNG."""
    options = PredictOptions((run, *(others or ())), refined, crops, preference, skip_bad, calibrated, abstain_below)
    with Console(quiet=quiet, as_json=json) as console:
        if is_segmentation_run(options):
            _predict_maps(console, data, out, options)
        else:
            _predict_classes(console, data, out, options)


def is_segmentation_run(options: PredictOptions) -> bool:
    """Return whether the first run is one of segmentation.

    Raises:
        RunError: If it is one and there are options that only classification has.
    """
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.tasks.segmentation.predictor import is_segmentation

    found = is_segmentation(RunDirectory(options.runs[0]).description)
    if found and (options.crops is not None or options.preference is not None):
        raise RunError("this is a run of segmentation; leave out --crops and --preference")
    if found and options.calibrated:
        raise RunError("confidences of pixels are not calibrated; leave out --calibrated")
    return found


def open_classifier(
    console: Console, data: str, options: PredictOptions, *, labelled: bool
) -> tuple[Predictor, Samples]:
    """Return the classifier of the runs, as the user wants it, and the data; print notes about the data."""
    from paretoda.data import open_samples
    from paretoda.run.ensemble import load_mean
    from paretoda.tasks.classification.build import pick_device

    predictor = load_mean(options.runs, pick_device("auto"))
    if options.crops is not None:
        predictor = predictor.cropping(options.crops)
    if options.preference is not None:
        predictor = predictor.preferring(parse_numbers("--preference", options.preference.split(",")))
    samples = open_samples(
        data,
        labelled=labelled,
        classes=predictor.classes if labelled else None,
        skip_bad=options.skip_bad,
        progress=partial(console.progress, "checking images"),
    )
    console.progress.stop()
    for note in samples.notes:
        console.say(note)
    return predictor, samples


def open_segmenter(
    console: Console, data: str, options: PredictOptions, *, labelled: bool, table: str | None = None
) -> tuple[ScenePredictor, SceneSamples]:
    """Return the segmenter of the runs and the scenes; print notes about the scenes."""
    from paretoda.data.segmentation import open_scenes
    from paretoda.run.ensemble import load_scene_mean
    from paretoda.tasks.classification.build import pick_device

    predictor = load_scene_mean(options.runs, pick_device("auto"))
    samples = open_scenes(
        data,
        labelled=labelled,
        table=table,
        skip_bad=options.skip_bad,
        progress=partial(console.progress, "checking images"),
    )
    console.progress.stop()
    for note in samples.notes:
        console.say(note)
    return predictor, samples


def choose_calibration(console: Console, predictor: Predictor, options: PredictOptions) -> bool:
    """Return whether the confidences are calibrated: if the user asks for it, and to abstain, if it is possible."""
    reason = None
    if options.refined:
        reason = "refined predictions have no temperature"
    elif len(options.runs) > 1:
        reason = "the mean of several runs has no temperature"
    elif predictor.temperature is None:
        reason = "this model has no temperature: another preference than the trained one, or a run of an older version"
    if options.calibrated and reason is not None:
        raise RunError(f"{reason}; leave out --calibrated")
    if options.abstain_below is not None and reason is not None:
        console.say(f"Confidences are not calibrated: {reason}.")
    return reason is None and (options.calibrated or options.abstain_below is not None)


def _predict_classes(console: Console, data: str, out: Path | None, options: PredictOptions) -> None:
    """Write one row for each sample into the file, or to stdout if there is none."""
    from paretoda.run.directory.tables import abstaining, predictions_table
    from paretoda.tasks.classification.run import prediction_rows

    predictor, samples = open_classifier(console, data, options, labelled=False)
    calibrated = choose_calibration(console, predictor, options)
    probabilities = predictor.probabilities(samples, refined=options.refined, calibrated=calibrated)
    rows = prediction_rows(predictor, samples, probabilities)
    threshold = options.abstain_below
    if threshold is not None:
        rows = abstaining(rows, probabilities.max(axis=1), threshold)
    counts = Counter(prediction for _, prediction, _ in rows if prediction)
    abstained = len(rows) - counts.total()
    if out is not None:
        write_text(out, predictions_table(rows))
        console.result(f"{len(rows)} predictions are in {out}; most frequent: {_list_frequent(counts) or 'none'}.")
    else:
        console.raw(predictions_table(rows))
    if threshold is not None:
        console.say(f"{abstained} of {len(rows)} have no answer: their confidence is below {threshold:g}.")

    def values() -> dict[str, Any]:
        facts: dict[str, Any] = {"samples": len(rows), "refined": options.refined, "crops": predictor.crops}
        facts |= {"calibrated": calibrated, "temperature": predictor.temperature, "runs": len(options.runs)}
        facts["counts"] = dict(counts)
        if threshold is not None:
            facts |= {"abstain_below": threshold, "abstained": abstained}
        return facts | ({"predictions": _rows_as_json(rows)} if out is None else {"out": str(out)})

    console.finish(values)


def _rows_as_json(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(("name", "prediction", "confidence"), row, strict=True)) for row in rows]


def _list_frequent(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(_MOST_FREQUENT))


def _predict_maps(console: Console, data: str, out: Path | None, options: PredictOptions) -> None:
    """Write a label map and an overlay of every image as PNG, and predictions.csv."""
    from paretoda.tasks.segmentation.label_files import write_maps

    if options.abstain_below is not None:
        raise RunError("--abstain-below is for classification; a run of segmentation labels every pixel")
    if out is None:
        raise RunError("label maps are pictures: say where they go, with --out FOLDER")
    if out.is_file():
        raise RunError(f"{out} is a file; give a folder with --out")
    predictor, samples = open_segmenter(console, data, options, labelled=False)
    scenes = predictor.scenes(samples, refined=options.refined)
    written = write_maps(scenes, predictor, out, overlays=True, count=len(samples), told=console.progress)
    write_text(out / "predictions.csv", written.table())
    console.progress.stop()
    counts = Counter(largest for _, largest, _ in written.rows)
    console.result(
        f"{len(written.rows)} label maps and overlays are in {out}; largest classes: {_list_frequent(counts)}."
    )

    def values() -> dict[str, Any]:
        facts = {"samples": len(written.rows), "refined": options.refined, "runs": len(options.runs), "out": str(out)}
        return facts | {"largest": dict(counts)}

    console.finish(values)
