"""Predictions of a regression for users, reports and benchmarks: as a table, in pictures, and against true values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.data.open.samples import open_samples
from paretoda.data.pair import Pair, Part
from paretoda.data.samples import Samples
from paretoda.data.values import ValuePair, Values, open_values
from paretoda.errors import DataError, RunError
from paretoda.evaluation.predictions import predict
from paretoda.evaluation.value_errors import measure_values
from paretoda.io.files import write_text
from paretoda.report.facts import NO_PICTURES, Figure, Pictures, RunFacts
from paretoda.report.values import draw_against_truth, draw_distributions
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.tables import values_table
from paretoda.run.result import Run
from paretoda.run.task import BenchData, Outcome, PredictOptions
from paretoda.tasks.classification.inputs import ClassificationInputs
from paretoda.tasks.regression.predictor import RegressionPredictor
from paretoda.types import Snapshot, Target

_BEYOND = 0.5
"""Share of the range of the source's values by which a prediction may leave it without a warning."""


def apply_options(predictor: RegressionPredictor, options: PredictOptions) -> RegressionPredictor:
    """Return the predictor; a regression's predictions have none of the options of classes."""
    if options != PredictOptions(skip_bad=options.skip_bad, runs=options.runs):
        raise RunError(
            "this is a run of regression, whose values have no classes, confidences or crops; leave out --refined, "
            "--calibrated, --abstain-below, --crops, --preference, --table and --classes"
        )
    return predictor


def predict_data(
    predictor: RegressionPredictor, data: str, out: Path | None, options: PredictOptions, callbacks: Callbacks
) -> Outcome:
    """Predict the values of new data: one row for each sample, in a file or as text.

    Args:
        predictor: Predictor of a finished run.
        data: Data without values.
        out: CSV file; None: the rows are the outcome's raw text.
        options: Options of the user.
        callbacks: Receive notes and progress.
    """
    samples = open_samples(data, labelled=False, skip_bad=options.skip_bad, progress=callbacks.progress)
    for note in samples.notes:
        callbacks.notify(note)
    values = predictor.values(samples, progress=callbacks.progress)
    rows = list(zip(samples.names(range(len(samples))), values.tolist(), strict=True))
    text = values_table(rows)
    low, middle, high = np.quantile(values, [0, 0.5, 1]).tolist()
    facts: dict[str, Any] = {"samples": len(rows), "runs": options.runs, "least": low, "median": middle, "most": high}
    if out is None:
        shown = [{"name": name, "value": value} for name, value in rows]
        return Outcome(lambda: {**facts, "predictions": shown}, raw=text)
    write_text(out, text)
    line = f"{len(rows)} predictions are in {out}; from {low:.6g} to {high:.6g}, median {middle:.6g}."
    return Outcome(lambda: {**facts, "out": str(out)}, [line])


def evaluate_data(predictor: RegressionPredictor, data: str, options: PredictOptions, callbacks: Callbacks) -> Outcome:
    """Compare the predictions of data with their true values.

    Args:
        predictor: Predictor of a finished run.
        data: Data with values.
        options: Options of the user.
        callbacks: Receive notes and progress.
    """
    samples, values = open_values(data, skip_bad=options.skip_bad, progress=callbacks.progress)
    for note in samples.notes:
        callbacks.notify(note)
    found = measure_values(predictor.values(samples, progress=callbacks.progress), values)
    named = {"mean absolute error": "mae", "root mean square": "rmse", "R²": "r2"}
    lines = [
        f"Values were used: the {len(samples)} samples of {data} were compared with theirs.",
        *(f"{name + ':':<22}{found[key]:.6g}" for name, key in named.items()),
    ]
    return Outcome(lambda: {"used_labels": True, **found, "samples": len(samples), "runs": options.runs}, lines)


def describe_range(predictor: RegressionPredictor, snapshot: Snapshot) -> list[str]:
    """Return a warning where predictions of the target are far beyond the values of the source.

    Args:
        predictor: The chosen model.
        snapshot: What the chosen model makes of the whole sets.
    """
    known = predictor.in_units(
        torch.cat([snapshot.source.labels, snapshot.held_out_source.labels])[:, None].cpu().numpy()
    )
    parts = [snapshot.target.logits, snapshot.held_out_target.logits]
    values = predictor.in_units(torch.cat([part.cpu() for part in parts]).numpy())
    low, high = float(known.min()), float(known.max())
    reach = _BEYOND * (high - low)
    beyond = int(((values < low - reach) | (values > high + reach)).sum())
    if not beyond:
        return []
    return [
        f"{beyond} of {len(values)} target samples have predictions far beyond the source's values, which lie between "
        f"{low:.6g} and {high:.6g}: the farthest is {values[np.abs(values - (low + high) / 2).argmax()]:.6g}; do not "
        "rely on them."
    ]


def make_pictures(predictor: RegressionPredictor, inputs: ClassificationInputs | None, facts: RunFacts) -> Pictures:
    """Return distributions of values and the held-out source; nothing where the data are no longer those of the run."""
    if inputs is None or not inputs.has_target or not isinstance(inputs.pair, ValuePair):
        return NO_PICTURES
    target = inputs.raw.target.samples
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    predicted = np.array([float(value) for _, value, _ in facts.predictions])
    if not np.isfinite(predicted).all():
        return NO_PICTURES
    known = inputs.pair.mean + inputs.pair.deviation * inputs.pair.labels.astype(np.float64)
    figures: list[Figure] = [draw_distributions({"source, true": known, "target, predicted": predicted})]
    device = next(predictor.model.parameters()).device
    own = predict(predictor.model, inputs.pair.inputs("held-out-source", 256), device=device)[1]
    held_out, truth = predictor.in_units(own.numpy()), known[inputs.pair.source_held_out]
    error = measure_values(held_out, truth)["mae"]
    return Pictures(figures=[*figures, draw_against_truth(held_out, truth, "held-out source", error)])


def add_oracle_pictures(
    pictures: Pictures, predictor: RegressionPredictor, labelled: str, callbacks: Callbacks
) -> Pictures:
    """Add the predictions of labelled data over their true values."""
    samples, values = open_values(labelled)
    for note in samples.notes:
        callbacks.notify(note)
    predicted = predictor.values(samples, progress=callbacks.progress)
    error = measure_values(predicted, values)["mae"]
    oracle = draw_against_truth(predicted, values, "target (oracle)", error, oracle=True)
    return replace(pictures, figures=[oracle, *pictures.figures])


@dataclass(frozen=True, eq=False)
class OracleValues:
    """Samples of a benchmark's target, with values that are for the table only.

    Args:
        samples: The target's samples without values, in the order in which `adapt` sees them.
        oracle_values: Their true values, shape (n,).
    """

    samples: Samples
    oracle_values: Values


def open_benchmark(source: Any, target: Any) -> BenchData:
    """Open a benchmark's source and target, arrays (x, y), whose values are kept apart."""
    if not isinstance(source, tuple) or not isinstance(target, tuple):
        raise DataError("suites of regression are made of arrays (x, y)")
    samples, values = open_values(target[:2])
    return BenchData(source[:2], target[0], OracleValues(samples, values))


def measure_run(run: Run, test: OracleValues) -> dict[str, Any]:
    """Measure the chosen and the last model of a run: measure -> kind of model -> value."""
    models = {"chosen": run.model, "last": run.last}
    found = {kind: measure_values(model.values(test.samples), test.oracle_values) for kind, model in models.items()}
    return {name: {kind: values[name] for kind, values in found.items()} for name in ("r2", "mae", "rmse")}


def measure_snapshot(snapshot: Snapshot, pair: Pair, test: OracleValues) -> float:
    """Return R² of a snapshot's predictions on both parts of the target.

    Args:
        snapshot: What a model makes of the whole sets.
        pair: Data of the run, which know the positions of the parts and the units.
        test: All samples of the target, in the order of the pair's, with oracle values.
    """
    assert isinstance(pair, ValuePair)
    parts: Sequence[tuple[Part, Target]] = (
        ("target", snapshot.target),
        ("held-out-target", snapshot.held_out_target),
    )
    places = np.concatenate([pair.positions(part)[rows.index.numpy()] for part, rows in parts])
    outputs = torch.cat([rows.logits[:, 0] for _, rows in parts]).double().numpy()
    return measure_values(pair.mean + pair.deviation * outputs, test.oracle_values[places])["r2"]
