"""Predictions of a classifier for users, reports and benchmarks: as a table, in pictures, and against labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data.build_pair import open_source
from paretoda.data.open.files import FileSamples
from paretoda.data.open.samples import open_samples
from paretoda.data.pair import Pair, Part
from paretoda.data.samples import Samples
from paretoda.errors import DataError, RunError
from paretoda.evaluation.metrics import (
    accuracy,
    confusion_matrix,
    expected_calibration_error,
    mean_per_class,
    open_set_scores,
    per_class_recall,
    selective,
)
from paretoda.evaluation.oracle import oracle_accuracy, oracle_open_set_scores
from paretoda.io.files import write_text
from paretoda.objectives.parts.label_sets import UNKNOWN
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.pictures import take_oracle_pictures, take_pictures
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.tables import Predicted, blank_uncertain, predictions_table
from paretoda.run.task import BenchData, Outcome, PredictOptions
from paretoda.tasks.classification.inputs import ClassificationInputs
from paretoda.tasks.classification.predictor import ClassificationPredictor, mark_unknown
from paretoda.types import Snapshot, Target

_MOST_FREQUENT = 5
_CONFUSIONS = 5


def prediction_rows(
    predictor: ClassificationPredictor,
    samples: Samples,
    probabilities: NDArray[np.float32],
) -> list[Predicted]:
    """Return one row for each sample: its name, predicted class and confidence, the largest probability of a class."""
    found = zip(
        samples.names(range(len(samples))), predictor.choose(probabilities), probabilities.max(axis=1), strict=True
    )
    return [(name, predictor.answers[place], round(float(most), 6)) for name, place, most in found]


def make_pictures(predictor: ClassificationPredictor, inputs: ClassificationInputs | None, facts: RunFacts) -> Pictures:
    """Return what the model makes of the data; no pictures where the data are no longer those of the run."""
    if inputs is None or not inputs.has_target or inputs.raw.classes != predictor.classes:
        return NO_PICTURES
    target, device = inputs.raw.target.samples, next(predictor.model.parameters()).device
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    has_source = inputs.given is None
    return take_pictures(predictor.model, inputs.pair, target, facts.predictions, device, has_source=has_source)


def add_oracle_pictures(
    pictures: Pictures, predictor: ClassificationPredictor, labelled: str, callbacks: Callbacks
) -> Pictures:
    """Put the labelled samples beside the held-out source, and their images in the place of unlabelled ones."""
    samples = open_samples(
        labelled, labelled=True, classes=predictor.classes, others=None if predictor.threshold is None else UNKNOWN
    )
    for note in samples.notes:
        callbacks.notify(note)
    with torch.no_grad():
        probabilities = predictor.probabilities(samples, progress=callbacks.progress)
        oracle = take_oracle_pictures(
            predictor.answers, samples, predictor.choose(probabilities), probabilities.max(axis=1)
        )
    return replace(pictures, cards=oracle.cards, confusions=[*oracle.confusions, *pictures.confusions])


def predict_data(
    predictor: ClassificationPredictor, data: str, out: Path | None, options: PredictOptions, callbacks: Callbacks
) -> Outcome:
    """Predict the classes of new data: one row for each sample, in a file or as text.

    Args:
        predictor: Predictor of a finished run.
        data: Unlabelled data.
        out: CSV file; None: the rows are the outcome's raw text.
        options: Options of the user.
        callbacks: Receive notes and progress.
    """
    samples = _open(predictor, data, options, callbacks, labelled=False)
    calibrated = _uses_temperature(predictor, options, callbacks)
    probabilities = predictor.probabilities(
        samples, refined=options.refined, calibrated=calibrated, progress=callbacks.progress
    )
    rows = prediction_rows(predictor, samples, probabilities)
    if options.abstain_below is not None:
        rows = blank_uncertain(rows, probabilities.max(axis=1), options.abstain_below)
    counts = Counter(prediction for _, prediction, _ in rows if prediction)
    abstained = len(rows) - counts.total()
    lines = []
    if out is not None:
        write_text(out, predictions_table(rows))
        common = ", ".join(f"{name} {count}" for name, count in counts.most_common(_MOST_FREQUENT))
        lines.append(f"{len(rows)} predictions are in {out}; most frequent: {common or 'none'}.")
    if options.abstain_below is not None:
        callbacks.notify(
            f"{abstained} of {len(rows)} have no answer: their confidence is below {options.abstain_below:g}."
        )

    def values() -> dict[str, Any]:
        facts: dict[str, Any] = {"samples": len(rows), "refined": options.refined, "crops": predictor.crops}
        facts |= {"calibrated": calibrated, "temperature": predictor.temperature, "runs": options.runs}
        facts["counts"] = dict(counts)
        if options.abstain_below is not None:
            facts |= {"abstain_below": options.abstain_below, "abstained": abstained}
        if out is not None:
            return facts | {"out": str(out)}
        names = ("name", "prediction", "confidence")
        return facts | {"predictions": [dict(zip(names, row, strict=True)) for row in rows]}

    return Outcome(values, lines, raw=None if out is not None else predictions_table(rows))


def evaluate_data(
    predictor: ClassificationPredictor, data: str, options: PredictOptions, callbacks: Callbacks
) -> Outcome:
    """Compare the predictions of labelled data with the labels.

    Args:
        predictor: Predictor of a finished run.
        data: Labelled data, whose labels are matched by class name.
        options: Options of the user.
        callbacks: Receive notes and progress.
    """
    samples = _open(predictor, data, options, callbacks, labelled=True)
    assert samples.labels is not None  # opened with labels
    options = replace(options, calibrated=_uses_temperature(predictor, options, callbacks))
    probabilities = predictor.probabilities(
        samples, refined=options.refined, calibrated=options.calibrated, progress=callbacks.progress
    )
    found = _measure_all(torch.from_numpy(probabilities), torch.from_numpy(samples.labels.values), predictor, options)
    lines = [
        f"Labels were used: the {found['samples']} samples of {data} were compared with theirs.",
        f"{'accuracy:':<20}{found['accuracy']:.4f}",
        f"{'mean over classes:':<20}{found['mean_per_class']:.4f}",
        *([] if found["ece"] is None else [f"{'calibration error:':<20}{found['ece']:.4f}"]),
    ]
    if options.abstain_below is not None:
        right = found["selective_accuracy"]
        lines += [
            f"{'answered:':<20}{found['coverage']:.4f}, confidence {options.abstain_below:g} or more",
            f"{'right of these:':<20}{'nothing was answered' if right is None else f'{right:.4f}'}",
        ]
    if predictor.threshold is not None:
        names = {"known_accuracy": "known classes:", "unknown_accuracy": f"{UNKNOWN}:", "h_score": "H-score:"}
        lines += [
            f"{text:<20}{'no sample' if found[name] is None else f'{found[name]:.4f}'}" for name, text in names.items()
        ]
    counts = np.bincount(samples.labels.values, minlength=len(predictor.answers))
    recalls = found["per_class"]
    rows = [
        [name, str(count), f"{recalls[name]:.4f}" if name in recalls else "no sample"]
        for name, count in zip(predictor.answers, counts, strict=True)
    ]
    mistakes = [f"  {each['label']} taken for {each['prediction']}: {each['count']}" for each in found["confusions"]]
    return Outcome(
        lambda: {"used_labels": True, **found},
        lines,
        {"class": "left", "samples": "right", "found": "right"},
        rows,
        ["Most frequent mistakes:", *mistakes] if mistakes else [],
    )


def _open(
    predictor: ClassificationPredictor, data: str, options: PredictOptions, callbacks: Callbacks, *, labelled: bool
) -> Samples:
    classes = predictor.classes if labelled else None
    samples = open_samples(
        data,
        labelled=labelled,
        classes=classes,
        others=None if predictor.threshold is None else UNKNOWN,
        skip_bad=options.skip_bad,
        progress=callbacks.progress,
    )
    for note in samples.notes:
        callbacks.notify(note)
    return samples


def _uses_temperature(predictor: ClassificationPredictor, options: PredictOptions, callbacks: Callbacks) -> bool:
    """Return whether confidences are calibrated: on request, and, where it is possible, to abstain."""
    reason = None
    if options.refined:
        reason = "refined predictions have no temperature"
    elif options.runs > 1:
        reason = "the mean of several runs has no temperature"
    elif predictor.threshold is not None:
        reason = "with --label-sets open a temperature would move confidences away from the threshold of the unknown"
    elif predictor.temperature is None:
        reason = "this model has no temperature: another preference than the trained one, or a run of an older version"
    if options.calibrated and reason is not None:
        raise RunError(f"{reason}; leave out --calibrated")
    if options.abstain_below is not None and reason is not None:
        callbacks.notify(f"Confidences are not calibrated: {reason}.")
    return reason is None and (options.calibrated or options.abstain_below is not None)


def _measure_all(
    probabilities: torch.Tensor, labels: torch.Tensor, predictor: ClassificationPredictor, options: PredictOptions
) -> dict[str, Any]:
    """Return all measures as plain values, fractions 0..1."""
    names = predictor.answers
    best, number = torch.from_numpy(predictor.choose(probabilities.numpy())), len(names)
    known = labels < len(predictor.classes)
    return {
        "accuracy": accuracy(best, labels),
        "mean_per_class": mean_per_class(best, labels, number),
        "per_class": {names[index]: value for index, value in per_class_recall(best, labels, number).items()},
        "ece": expected_calibration_error(probabilities[known].double().log(), labels[known]) if known.any() else None,
        **({} if predictor.threshold is None else open_set_scores(best, labels, len(predictor.classes))),
        "samples": len(labels),
        "refined": options.refined,
        "calibrated": options.calibrated,
        "crops": predictor.crops,
        "runs": options.runs,
        **({} if options.abstain_below is None else selective(probabilities, labels, options.abstain_below)),
        "confusions": _most_confused(confusion_matrix(best, labels, number), names),
    }


def _most_confused(matrix: torch.Tensor, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the most frequent mistakes."""
    wrong = matrix.clone().fill_diagonal_(0)
    order = wrong.flatten().argsort(descending=True, stable=True)[:_CONFUSIONS].tolist()
    places = [divmod(place, len(names)) for place in order]
    return [
        {"label": names[label], "prediction": names[taken], "count": int(wrong[label, taken])}
        for label, taken in places
        if wrong[label, taken] > 0
    ]


@dataclass(frozen=True, eq=False)
class OracleSamples:
    """Samples of a benchmark's target, with labels that are for the table only.

    Args:
        samples: The target's samples without labels, in the order in which `adapt` sees them.
        classes: Names of the source's classes.
        oracle_labels: Labels of the samples as positions in `classes`; behind them, for samples of no such class.
        opens: Whether the target has classes that the source does not have.
    """

    samples: Samples
    classes: tuple[str, ...]
    oracle_labels: NDArray[np.int64]
    opens: bool = False


def open_benchmark(source: Any, target: Any, *, skip_bad: bool) -> BenchData:
    """Open a benchmark's source and target, whose labels are kept apart.

    Args:
        source: Labelled source: a path, arrays (x, y, classes), or files; a list of several.
        target: Labelled target in the same forms; where it has a class `UNKNOWN`, it has an open label set.
        skip_bad: Leave out images that cannot be read.
    """
    labels = open_source(source, partial(open_samples, labelled=True, skip_bad=skip_bad)).labels
    assert labels is not None
    theirs = open_samples(target, labelled=True, skip_bad=skip_bad)
    assert theirs.labels is not None
    opens = UNKNOWN in theirs.labels.classes and UNKNOWN not in labels.classes
    others = UNKNOWN if opens else None
    labelled = open_samples(target, labelled=True, classes=labels.classes, others=others, skip_bad=skip_bad)
    plain = _without_labels(target)
    samples = open_samples(plain, labelled=False, skip_bad=skip_bad)
    test = OracleSamples(samples, labels.classes, _labels_in_order(samples, labelled), opens)
    return BenchData(source, plain, test)


def _labels_in_order(samples: Samples, labelled: Samples) -> NDArray[np.int64]:
    """Return labels in the order of `samples`: without labels, a folder's images have another order."""
    assert labelled.labels is not None
    if not isinstance(samples, FileSamples) or not isinstance(labelled, FileSamples):
        return labelled.labels.values
    labels = dict(zip(labelled.paths, labelled.labels.values.tolist(), strict=True))
    if stray := [path for path in samples.paths if path not in labels]:
        raise DataError(f"{stray[0]} is not in the folder of a class, so it cannot be counted; move it away")
    return np.array([labels[path] for path in samples.paths], dtype=np.int64)


def _without_labels(target: Any) -> Any:
    if isinstance(target, FileSamples):
        return replace(target, labels=None)
    return target[0] if isinstance(target, tuple) else target


def measure_probabilities(
    probabilities: Mapping[str, NDArray[Any]],
    test: OracleSamples,
    thresholds: Mapping[str, float | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Measure class probabilities by the target's labels.

    Args:
        probabilities: Kind of model -> probabilities of `test.samples`, shape (n, K).
        test: The target's samples with oracle labels.
        thresholds: Kind of model -> its threshold of the novelty, if it has one.

    Returns:
        Measure -> kind of model -> value.
    """
    found: dict[str, Any] = {"accuracy": {}, "mean_class_accuracy": {}, "per_class": {}}
    truth, count = torch.from_numpy(test.oracle_labels), len(test.classes)
    names = (*test.classes, *([UNKNOWN] if test.opens else []))
    for kind, values in probabilities.items():
        scores, threshold = torch.from_numpy(np.asarray(values)), thresholds.get(kind)
        best = scores.argmax(dim=1)
        if threshold is not None:
            best = torch.from_numpy(mark_unknown(best.numpy(), scores.numpy(), threshold))
        found["accuracy"][kind] = accuracy(best, truth)
        recalls = per_class_recall(best, truth, count + 1)
        found["mean_class_accuracy"][kind] = sum(recalls.values()) / len(recalls)
        found["per_class"][kind] = {names[place]: recall for place, recall in recalls.items()}
        if test.opens:
            for name, value in oracle_open_set_scores(best, truth, count).items():
                found.setdefault(name, {})[kind] = value
    return found


def measure_snapshot(snapshot: Snapshot, pair: Pair, test: OracleSamples) -> dict[str, float]:
    """Return the accuracy of a snapshot's predictions on both parts of the target, of samples of the source's classes.

    Args:
        snapshot: What a model makes of the whole sets.
        pair: Data of the run, which know the positions of the parts.
        test: All samples of the target, in the order of the pair's, with oracle labels.
    """
    parts: tuple[tuple[Part, Target], ...] = (
        ("target", snapshot.target),
        ("held-out-target", snapshot.held_out_target),
    )
    places = np.concatenate([pair.positions(part)[rows.index.numpy()] for part, rows in parts])
    logits, labels = torch.cat([rows.logits for _, rows in parts]), torch.from_numpy(test.oracle_labels[places])
    known = labels < len(test.classes)
    return {"oracle_accuracy": oracle_accuracy(logits[known], labels[known])}
