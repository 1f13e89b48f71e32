"""`paretoda evaluate`: a finished run on new data whose labels are known."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preference, RunPath, SkipBad, split
from paretoda.cli.predict import (
    AbstainBelow,
    Calibrated,
    Crops,
    Others,
    PredictOptions,
    Refined,
    choose_calibration,
    is_segmentation_run,
    open_classifier,
    open_segmenter,
)
from paretoda.core.options import unknown
from paretoda.errors import RunError

if TYPE_CHECKING:
    import torch

    from paretoda.data.samples import Samples
    from paretoda.tasks.classification.predictor import Predictor

_MISTAKES = 5
"""Most frequent confusions that are shown."""


def evaluate(  # noqa: PLR0913  (options, not arguments)
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="LABELLED", help="target data with labels")],
    *,
    others: Others = None,
    refined: Refined = False,
    calibrated: Calibrated = False,
    abstain_below: AbstainBelow = None,
    crops: Crops = None,
    preference: Preference = None,
    skip_bad: SkipBad = False,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="segmentation: table of the label files (`paretoda list tables`)")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="segmentation: classes of the mean IoU (default: all)")
    ] = None,
    json: Json = False,
) -> None:
    """Measure a run on labelled target data; labels are matched by class name."""
    options = PredictOptions((run, *(others or ())), refined, crops, preference, skip_bad, calibrated, abstain_below)
    with Console(as_json=json) as console:
        if is_segmentation_run(options):
            _evaluate_maps(console, data, options, table, classes)
            return
        if table is not None or classes is not None:
            raise RunError("this is a run of classification; leave out --table and --classes")
        _evaluate_classes(console, data, options)


def _evaluate_classes(console: Console, data: str, options: PredictOptions) -> None:
    """Compare the predicted classes with the labels, and say that labels were used."""
    predictor, samples = open_classifier(console, data, options, labelled=True)
    calibrated = choose_calibration(console, predictor, options)
    facts = _measure(predictor, samples, options, calibrated=calibrated)
    console.result(f"Labels were used: the {facts['samples']} samples of {data} were compared with theirs.")
    console.result(f"{'accuracy:':<20}{facts['accuracy']:.4f}")
    console.result(f"{'mean over classes:':<20}{facts['mean_per_class']:.4f}")
    console.result(f"{'calibration error:':<20}{facts['ece']:.4f}")
    if options.abstain_below is not None:
        right = facts["selective_accuracy"]
        console.result(f"{'answered:':<20}{facts['coverage']:.4f}, confidence {options.abstain_below:g} or more")
        console.result(f"{'right of these:':<20}{'nothing was answered' if right is None else f'{right:.4f}'}")
    console.result()
    _show_classes(console, predictor, samples, facts["per_class"])
    if facts["confusions"]:
        console.result()
        console.result("Most frequent mistakes:")
    for mistake in facts["confusions"]:
        console.result(f"  {mistake['label']} taken for {mistake['prediction']}: {mistake['count']}")
    console.finish(lambda: {"used_labels": True, **facts})


def _show_classes(console: Console, predictor: Predictor, samples: Samples, recalls: dict[str, float]) -> None:
    import numpy as np

    assert samples.labels is not None  # opened with labels
    counts = np.bincount(samples.labels.values, minlength=len(predictor.classes))
    rows = [
        [name, str(count), f"{recalls[name]:.4f}" if name in recalls else "no sample"]
        for name, count in zip(predictor.classes, counts, strict=True)
    ]
    console.table({"class": "left", "samples": "right", "found": "right"}, rows)


def _measure(predictor: Predictor, samples: Samples, options: PredictOptions, *, calibrated: bool) -> dict[str, Any]:
    """Return all measures as plain values; rates are fractions 0..1."""
    import torch

    from paretoda.evaluation import metrics

    assert samples.labels is not None  # opened with labels
    labels = torch.from_numpy(samples.labels.values)
    probabilities = torch.from_numpy(predictor.probabilities(samples, refined=options.refined, calibrated=calibrated))
    names, number = predictor.classes, len(predictor.classes)
    best = probabilities.argmax(dim=1)
    threshold = options.abstain_below
    return {
        "accuracy": metrics.accuracy(best, labels),
        "mean_per_class": metrics.mean_per_class(best, labels, number),
        "per_class": {names[index]: value for index, value in metrics.per_class_recall(best, labels, number).items()},
        "ece": metrics.expected_calibration_error(probabilities.double().log(), labels),
        "samples": len(labels),
        "refined": options.refined,
        "calibrated": calibrated,
        "crops": predictor.crops,
        "runs": len(options.runs),
        **({} if threshold is None else metrics.selective(probabilities, labels, threshold)),
        "confusions": _list_mistakes(metrics.confusion_matrix(best, labels, number), names),
    }


def _list_mistakes(matrix: torch.Tensor, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the most frequent confusions.

    Args:
        matrix: Confusion matrix, shape (K, K), with a row for each label.
        names: Names of the K classes.
    """
    wrong = matrix.clone().fill_diagonal_(0)
    order = wrong.flatten().argsort(descending=True, stable=True)[:_MISTAKES].tolist()
    places = [divmod(place, len(names)) for place in order]
    return [
        {"label": names[label], "prediction": names[predicted], "count": int(wrong[label, predicted])}
        for label, predicted in places
        if wrong[label, predicted] > 0
    ]


def _evaluate_maps(
    console: Console, data: str, options: PredictOptions, table: str | None, classes: str | None
) -> None:
    """Show the IoU of every class, counted over all images together, and its mean; say that labels were used."""
    from paretoda.data.labels import listed
    from paretoda.tasks.segmentation.run import measured

    if options.abstain_below is not None:
        raise RunError("--abstain-below measures classifications, not pixels; leave it out, or use it in predict")
    predictor, samples = open_segmenter(console, data, options, labelled=True, table=table)
    if samples.classes != predictor.classes:
        raise RunError(
            f"{data} has the classes {listed(samples.classes)}, the model has {listed(predictor.classes)}; evaluate on "
            "labels of the model's classes, which classes.txt names beside plain images/ and labels/, or read them "
            "as such with --table NAME (`paretoda list tables`)"
        )
    counted = predictor.classes if classes is None else _read_classes(classes, predictor.classes)
    found = measured(predictor, samples, refined=options.refined, told=console.progress)
    scores = found.scores.over([predictor.classes.index(name) for name in counted])
    console.progress.stop()
    console.result(f"Labels were used: the {len(samples)} images of {data} were compared with theirs.")
    console.result(f"{'mean IoU:':<20}{scores.miou:.4f} over {scores.counted} classes")
    console.result(f"{'pixel accuracy:':<20}{scores.accuracy:.4f}")
    console.result()
    rows = [
        [name, f"{number:,}", f"{value:.4f}" if value == value else "neither there nor predicted"]  # noqa: PLR0124
        for name, number, value in zip(predictor.classes, found.counts.sum(1).tolist(), scores.iou, strict=True)
    ]
    console.table({"class": "left", "pixels": "right", "IoU": "right"}, rows)

    def values() -> dict[str, Any]:
        per_class = dict(zip(predictor.classes, scores.iou, strict=True))
        facts = {"used_labels": True, "miou": scores.miou, "accuracy": scores.accuracy, "per_class": per_class}
        facts |= {"classes": list(counted), "classes_counted": scores.counted, "samples": len(samples)}
        return facts | {"refined": options.refined, "runs": len(options.runs)}

    console.finish(values)


def _read_classes(classes: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the classes that the user wrote with commas between them, each once."""
    names = tuple(dict.fromkeys(split(classes)))
    for name in names:
        if name not in known:
            raise RunError(f"--classes: {unknown('class', name, known)}")
    if not names:
        raise RunError("--classes takes names of classes, with commas between them")
    return names
