"""`paretoda predict`: a finished run on new data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretoda.cli.console import Console
from paretoda.cli.segmentation import predict_scenes
from paretoda.data import open_samples
from paretoda.data.samples import Samples
from paretoda.errors import RunError
from paretoda.io.files import write_text
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import abstaining, predictions_table
from paretoda.run.ensemble import load_mean
from paretoda.tasks.classification.build import pick_device
from paretoda.tasks.classification.predictor import Predictor
from paretoda.tasks.classification.run import prediction_rows
from paretoda.tasks.segmentation.predictor import is_segmentation

_COMMON = 5


@dataclass(frozen=True)
class PredictOptions:
    """How a user wants the predictions.

    Args:
        refined: by the class-wise discriminators as well.
        crops: of an image; None: as many as the run had.
        preference: what each loss counts, for a run of the scheme "hypernetwork"; None: as it was trained.
        skip_bad: without images that cannot be read.
        calibrated: confidences by the run's temperature.
        abstain_below: no answer where the confidence is lower; None: always one.
        others: runs whose probabilities are averaged with those of the first.
        table: of label files, where a segmenter is evaluated; None: the layout's.
        classes: over which alone the mean IoU is, with commas; None: all.
    """

    refined: bool = False
    crops: int | None = None
    preference: str | None = None
    skip_bad: bool = False
    calibrated: bool = False
    abstain_below: float | None = None
    others: tuple[Path, ...] = ()
    table: str | None = None
    classes: str | None = None


def of_scenes(run: Path, ask: PredictOptions) -> bool:
    """Whether the run is one of segmentation, which has its own functions."""
    found = is_segmentation(RunDirectory(run).description)
    if found and (ask.crops is not None or ask.preference is not None):
        raise RunError("this is a run of segmentation; leave out --crops and --preference")
    if found and ask.calibrated:
        raise RunError("confidences of pixels are not calibrated; leave out --calibrated")
    if not found and (ask.table is not None or ask.classes is not None):
        raise RunError("this is a run of classification; leave out --table and --classes")
    return found


def open_run_and_data(
    screen: Console, run: Path, data: str, ask: PredictOptions, *, labelled: bool
) -> tuple[Predictor, Samples]:
    """The run's model as the user wants it, and the data, of which notes are said."""
    predictor = load_mean([run, *ask.others], pick_device("auto"))
    if ask.crops is not None:
        predictor = predictor.cropping(ask.crops)
    if ask.preference is not None:
        predictor = predictor.preferring(numbers(ask.preference))

    classes = predictor.classes if labelled else None
    samples = open_samples(data, labelled=labelled, classes=classes, skip_bad=ask.skip_bad, progress=screen.progress)
    screen.progress.stop()
    for note in samples.notes:
        screen.say(note)
    return predictor, samples


def numbers(preference: str) -> list[float]:
    """What the user wrote after --preference."""
    try:
        return [float(part) for part in preference.split(",")]
    except ValueError as error:
        raise RunError(f"--preference takes numbers with commas between them: {error}") from error


def run_predict(screen: Console, run: Path, data: str, out: Path | None, ask: PredictOptions) -> None:
    """One row a sample: into the file, or to stdout where none is given; of scenes, pictures into a folder."""
    if of_scenes(run, ask):
        if ask.abstain_below is not None:
            raise RunError("--abstain-below is for classification; a run of segmentation labels every pixel")
        predict_scenes(screen, [run, *ask.others], data, out, refined=ask.refined, skip_bad=ask.skip_bad)
        return
    predictor, samples = open_run_and_data(screen, run, data, ask, labelled=False)
    calibrated = calibrated_as_asked(screen, predictor, ask)
    found = predictor.probabilities(samples, refined=ask.refined, calibrated=calibrated)
    rows = prediction_rows(predictor, samples, found)
    if ask.abstain_below is not None:
        rows = abstaining(rows, found.max(axis=1), ask.abstain_below)
    counts = Counter(prediction for _, prediction, _ in rows if prediction)
    silent = len(rows) - counts.total()
    if out is not None:
        write_text(out, predictions_table(rows))
        common = ", ".join(f"{name} {count}" for name, count in counts.most_common(_COMMON))
        screen.result(f"{len(rows)} predictions are in {out}; most frequent: {common or 'none'}.")
    else:
        screen.raw(predictions_table(rows))
    if ask.abstain_below is not None:
        screen.say(f"{silent} of {len(rows)} have no answer: their confidence is below {ask.abstain_below:g}.")

    def values() -> dict[str, Any]:
        facts: dict[str, Any] = {"samples": len(rows), "refined": ask.refined, "crops": predictor.crops}
        facts |= {"calibrated": calibrated, "temperature": predictor.temperature, "runs": 1 + len(ask.others)}
        facts["counts"] = dict(counts)
        if ask.abstain_below is not None:
            facts |= {"abstain_below": ask.abstain_below, "abstained": silent}
        if out is not None:
            return facts | {"out": str(out)}
        names = ("name", "prediction", "confidence")
        return facts | {"predictions": [dict(zip(names, row, strict=True)) for row in rows]}

    screen.finish(values)


def calibrated_as_asked(screen: Console, predictor: Predictor, ask: PredictOptions) -> bool:
    """Whether the confidences are calibrated: where it was asked for, and to abstain, where it is possible."""
    reason = None
    if ask.refined:
        reason = "refined predictions have no temperature"
    elif ask.others:
        reason = "the mean of several runs has no temperature"
    elif predictor.temperature is None:
        reason = "this model has no temperature: another preference than the trained one, or a run of an older version"
    if ask.calibrated and reason is not None:
        raise RunError(f"{reason}; leave out --calibrated")
    if ask.abstain_below is not None and reason is not None:
        screen.say(f"Confidences are not calibrated: {reason}.")
    return reason is None and (ask.calibrated or ask.abstain_below is not None)
