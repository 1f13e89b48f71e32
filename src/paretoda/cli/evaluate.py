"""`paretoda evaluate`: a finished run on new data whose labels are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.cli.console import Console
from paretoda.cli.predict import PredictOptions, calibrated_as_asked, of_scenes, open_run_and_data
from paretoda.cli.segmentation import evaluate_scenes
from paretoda.data.samples import Samples
from paretoda.errors import RunError
from paretoda.evaluation.metrics import (
    accuracy,
    confusion_matrix,
    expected_calibration_error,
    mean_per_class,
    per_class_recall,
    selective,
)
from paretoda.tasks.classification.predictor import ClassificationPredictor

_CONFUSIONS = 5


def run_evaluate(screen: Console, run: Path, data: str, ask: PredictOptions) -> None:
    """Compare the predictions with labels, and say that labels were used."""
    if of_scenes(run, ask):
        if ask.abstain_below is not None:
            raise RunError("--abstain-below measures classifications, not pixels; leave it out, or use it in predict")
        runs = [run, *ask.others]
        evaluate_scenes(
            screen, runs, data, refined=ask.refined, skip_bad=ask.skip_bad, table=ask.table, classes=ask.classes
        )
        return
    predictor, samples = open_run_and_data(screen, run, data, ask, labelled=True)
    assert samples.labels is not None  # opened with labels
    how = replace(ask, calibrated=calibrated_as_asked(screen, predictor, ask))
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


def measured(
    predictor: ClassificationPredictor, samples: Samples, labels: torch.Tensor, ask: PredictOptions
) -> dict[str, Any]:
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
        "runs": 1 + len(ask.others),
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
