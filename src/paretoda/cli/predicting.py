"""`paretoda predict` and `paretoda evaluate`: a finished run on new data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.cli.screen import Screen
from paretoda.cli.segmenting import evaluate_scenes, predict_scenes
from paretoda.data import open_samples
from paretoda.data.samples import Samples
from paretoda.evaluation.metrics import (
    accuracy,
    confusion_matrix,
    expected_calibration_error,
    mean_per_class,
    per_class_recall,
    selective,
)
from paretoda.job.build import pick_device
from paretoda.job.directory import RunDirectory, RunError
from paretoda.job.predictor import Predictor, load_predictor
from paretoda.job.run import predicted
from paretoda.job.run_files import abstaining, predictions_table
from paretoda.job.segmentation.predictor import is_segmentation
from paretoda.training.files import write_text

_CONFUSIONS = 5


@dataclass(frozen=True)
class Ask:
    """How a user wants the predictions.

    Args:
        refined: by the class-wise discriminators as well.
        crops: of an image; None: as many as the run had.
        preference: what each loss counts, for a run of the scheme "hypernetwork"; None: as it was trained.
        skip_bad: without images that cannot be read.
        calibrated: confidences by the run's temperature.
        abstain_below: no answer where the confidence is lower; None: always one.
    """

    refined: bool = False
    crops: int | None = None
    preference: str | None = None
    skip_bad: bool = False
    calibrated: bool = False
    abstain_below: float | None = None


def _scenes(run: Path, ask: Ask) -> bool:
    """Whether the run is one of segmentation, which has its own functions."""
    found = is_segmentation(RunDirectory(run).description)
    if found and (ask.crops is not None or ask.preference is not None):
        raise RunError("this is a run of segmentation; leave out --crops and --preference")
    if found and ask.calibrated:
        raise RunError("confidences of pixels are not calibrated; leave out --calibrated")
    return found


def _open(screen: Screen, run: Path, data: str, ask: Ask, *, labelled: bool) -> tuple[Predictor, Samples]:
    directory = RunDirectory(run)
    predictor = load_predictor(directory.model, directory.description, pick_device("auto"))
    if ask.crops is not None:
        predictor = predictor.cropping(ask.crops)
    if ask.preference is not None:
        predictor = predictor.preferring(numbers(ask.preference))

    def checked(done: int, total: int) -> None:
        screen.progress("checking images", done, total)

    classes = predictor.classes if labelled else None
    samples = open_samples(data, labelled=labelled, classes=classes, skip_bad=ask.skip_bad, progress=checked)
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


def run_predict(screen: Screen, run: Path, data: str, out: Path | None, ask: Ask) -> None:
    """One row a sample: into the file, or to stdout where none is given; of scenes, pictures into a folder."""
    if _scenes(run, ask):
        predict_scenes(
            screen, run, data, out, refined=ask.refined, skip_bad=ask.skip_bad, abstain_below=ask.abstain_below
        )
        return
    predictor, samples = _open(screen, run, data, ask, labelled=False)
    calibrated = _calibrated(screen, predictor, ask)
    found = predictor.probabilities(samples, refined=ask.refined, calibrated=calibrated)
    rows = predicted(predictor, samples, found)
    if ask.abstain_below is not None:
        rows = abstaining(rows, found.max(axis=1), ask.abstain_below)
    counts = Counter(prediction for _, prediction, _ in rows if prediction)
    silent = len(rows) - counts.total()
    if out is not None:
        write_text(out, predictions_table(rows))
        common = ", ".join(f"{name} {count}" for name, count in counts.most_common(_CONFUSIONS))
        screen.result(f"{len(rows)} predictions are in {out}; most frequent: {common or 'none'}.")
    else:
        screen.raw(predictions_table(rows))
    if ask.abstain_below is not None:
        screen.say(f"{silent} of {len(rows)} have no answer: their confidence is below {ask.abstain_below:g}.")

    def values() -> dict[str, Any]:
        facts: dict[str, Any] = {"samples": len(rows), "refined": ask.refined, "crops": predictor.crops}
        facts |= {"calibrated": calibrated, "temperature": predictor.temperature, "counts": dict(counts)}
        if ask.abstain_below is not None:
            facts |= {"abstain_below": ask.abstain_below, "abstained": silent}
        if out is not None:
            return facts | {"out": str(out)}
        names = ("name", "prediction", "confidence")
        return facts | {"predictions": [dict(zip(names, row, strict=True)) for row in rows]}

    screen.finish(values)


def _calibrated(screen: Screen, predictor: Predictor, ask: Ask) -> bool:
    """Whether the confidences are calibrated: where it was asked for, and to abstain, where it is possible."""
    reason = None
    if ask.refined:
        reason = "refined predictions have no temperature"
    elif predictor.temperature is None:
        reason = "this model has no temperature: another preference than the trained one, or a run of an older version"
    if ask.calibrated and reason is not None:
        raise RunError(f"{reason}; leave out --calibrated")
    if ask.abstain_below is not None and reason is not None:
        screen.say(f"Confidences are not calibrated: {reason}.")
    return reason is None and (ask.calibrated or ask.abstain_below is not None)


def run_evaluate(screen: Screen, run: Path, data: str, ask: Ask) -> None:
    """Compare the predictions with labels, and say that labels were used."""
    if _scenes(run, ask):
        if ask.abstain_below is not None:
            raise RunError("--abstain-below measures classifications, not pixels; leave it out, or use it in predict")
        evaluate_scenes(screen, run, data, refined=ask.refined, skip_bad=ask.skip_bad)
        return
    predictor, samples = _open(screen, run, data, ask, labelled=True)
    assert samples.labels is not None  # opened with labels
    how = replace(ask, calibrated=_calibrated(screen, predictor, ask))
    found = measured(predictor, samples, torch.from_numpy(samples.labels.values), how)
    screen.result(f"Labels were used: the {found['samples']} samples of {data} were compared with theirs.")
    screen.result(f"{'accuracy:':<20}{found['accuracy']:.4f}")
    screen.result(f"{'mean over classes:':<20}{found['mean_per_class']:.4f}")
    screen.result(f"{'calibration error:':<20}{found['ece']:.4f}")
    if ask.abstain_below is not None:
        right = found["selective_accuracy"]
        screen.result(f"{'answered:':<20}{found['coverage']:.4f}, confidence {ask.abstain_below:g} or more")
        screen.result(f"{'right of these:':<20}{'nothing was answered' if right is None else f'{right:.4f}'}")
    screen.result()
    counts = np.bincount(samples.labels.values, minlength=len(predictor.classes))
    recalls = found["per_class"]
    rows = [
        [name, str(count), f"{recalls[name]:.4f}" if name in recalls else "no sample"]
        for name, count in zip(predictor.classes, counts, strict=True)
    ]
    screen.table({"class": "left", "samples": "right", "found": "right"}, rows)
    if found["confusions"]:
        screen.result()
        screen.result("Most frequent mistakes:")
    for mistake in found["confusions"]:
        screen.result(f"  {mistake['label']} taken for {mistake['prediction']}: {mistake['count']}")
    screen.finish(lambda: {"used_labels": True, **found})


def measured(predictor: Predictor, samples: Samples, labels: torch.Tensor, ask: Ask) -> dict[str, Any]:
    """All measures as plain values, fractions 0..1."""
    found = predictor.probabilities(samples, refined=ask.refined, calibrated=ask.calibrated)
    probabilities = torch.from_numpy(found)
    best, number = probabilities.argmax(dim=1), len(predictor.classes)
    names = predictor.classes
    return {
        "accuracy": accuracy(best, labels),
        "mean_per_class": mean_per_class(best, labels, number),
        "per_class": {names[index]: value for index, value in per_class_recall(best, labels, number).items()},
        "ece": expected_calibration_error(probabilities.double().log(), labels),
        "samples": len(labels),
        "refined": ask.refined,
        "calibrated": ask.calibrated,
        "crops": predictor.crops,
        **({} if ask.abstain_below is None else selective(probabilities, labels, ask.abstain_below)),
        "confusions": _confusions(confusion_matrix(best, labels, number), names),
    }


def _confusions(matrix: torch.Tensor, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The most frequent mistakes."""
    wrong = matrix.clone().fill_diagonal_(0)
    order = wrong.flatten().argsort(descending=True, stable=True)[:_CONFUSIONS].tolist()
    places = [divmod(place, len(names)) for place in order]
    return [
        {"label": names[label], "prediction": names[taken], "count": int(wrong[label, taken])}
        for label, taken in places
        if wrong[label, taken] > 0
    ]
