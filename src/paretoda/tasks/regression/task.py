"""The task of predicting a number for each image or feature vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from paretoda.data import PairSettings
from paretoda.data.doctor.findings import Finding
from paretoda.data.doctor.values import examine_values
from paretoda.data.pair import Pair
from paretoda.data.scaling import FeatureTransform
from paretoda.data.values import ValuePair, make_value_pair
from paretoda.errors import DataError
from paretoda.evaluation.validators import VALUE_VALIDATORS
from paretoda.io.files import write_text
from paretoda.objectives.regression import VALUE_GUIDES, VALUE_METHODS, VALUE_TARGET_LOSSES
from paretoda.report.card import CardFacts
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import values_table
from paretoda.run.result import Run
from paretoda.run.settings import Settings
from paretoda.run.task import BenchData, Conclusion, Tables, Task
from paretoda.schemes import SCHEMES
from paretoda.tasks import CLASSIFICATION, REGRESSION, find_task
from paretoda.tasks.classification.inputs import ClassificationInputs, open_inputs
from paretoda.tasks.regression.build import build
from paretoda.tasks.regression.evaluation import (
    add_oracle_pictures,
    apply_options,
    describe_range,
    evaluate_data,
    make_pictures,
    measure_run,
    measure_snapshot,
    open_benchmark,
    predict_data,
)
from paretoda.tasks.regression.export import RegressionProgram
from paretoda.tasks.regression.predictor import RegressionPredictor, average, load_regression
from paretoda.training.step import Step
from paretoda.types import Progress, Snapshot

DEFAULTS: Mapping[str, Any] = {
    "method": "rsd",
    "target_loss": "none",
    "scheme": "linear",
    "guide": "neighbours",
    "select": "dev",
    "dropout": 0.0,
    "augment": "none",
    "scaling": "source",
}
"""Defaults that differ from those of `Settings`; docs/decisions/0015-regression.md has the reasons."""


class Regression(Task[ClassificationInputs, RegressionPredictor]):
    """Images or feature vectors with one number each."""

    name = REGRESSION

    build = staticmethod(build)
    average = staticmethod(average)
    apply_options = staticmethod(apply_options)
    pictures = staticmethod(make_pictures)
    oracle_pictures = staticmethod(add_oracle_pictures)
    predict_data = staticmethod(predict_data)
    evaluate_data = staticmethod(evaluate_data)
    make_program = staticmethod(RegressionProgram)

    @property
    def tables(self) -> Tables:
        """The names that settings take."""
        backbones = find_task(CLASSIFICATION).tables.backbones
        return Tables(
            VALUE_METHODS, VALUE_TARGET_LOSSES, VALUE_GUIDES, SCHEMES, VALUE_VALIDATORS, backbones, rules=("last",)
        )

    def defaults(self, values: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the defaults that differ from those of `Settings`."""
        return DEFAULTS

    def check(self, settings: Settings) -> None:
        """Raise ValueError for a reference, by which no validator of regression can compare, and for target labels."""
        if settings.reference:
            raise ValueError("no label-free score of values tells negative transfer; leave out --reference")
        if settings.label_loss:
            raise ValueError("--target-labels is not for regression; leave it out")

    def open(
        self,
        settings: Settings,
        source: Any,
        target: Any,
        device: torch.device,
        callbacks: Callbacks = NO_CALLBACKS,
        *,
        resuming: bool = False,  # noqa: ARG002
    ) -> ClassificationInputs:
        """Open and check the data, and compute the features of a frozen backbone."""
        return open_inputs(settings, source, target, device, callbacks, make_value_pair)

    def predictor(self, step: Step, inputs: ClassificationInputs) -> RegressionPredictor:
        """Copy the step's present model into a predictor for new data of the target."""
        assert isinstance(inputs.pair, ValuePair)
        network = find_task(CLASSIFICATION).predictor(step, inputs)
        return RegressionPredictor(**vars(network), mean=inputs.pair.mean, deviation=inputs.pair.deviation)

    def for_sources(
        self, predictor: RegressionPredictor, inputs: ClassificationInputs
    ) -> tuple[RegressionPredictor, ...]:
        """Return the same networks for new data of the source, whose features are scaled differently."""
        found: tuple[RegressionPredictor, ...] = find_task(CLASSIFICATION).for_sources(predictor, inputs)
        return found

    def conclude(
        self,
        settings: Settings,  # noqa: ARG002
        step: Step,  # noqa: ARG002
        predictor: RegressionPredictor,
        snapshot: Snapshot,
    ) -> Conclusion[RegressionPredictor]:
        """Warn of predictions far beyond the values of the source."""
        return Conclusion(predictor, sentences=describe_range(predictor, snapshot))

    def load(self, directory: RunDirectory, device: torch.device) -> RegressionPredictor:
        """Load the model of a finished run; nothing in its files is executed."""
        return load_regression(directory.model, directory.description, device)

    def write_predictions(
        self, directory: RunDirectory, run: Run, inputs: ClassificationInputs, callbacks: Callbacks
    ) -> None:
        """Write predictions.csv: name and value of each target sample."""
        samples = inputs.raw.target.samples
        values = run.model.values(samples, workers=run.settings.workers, progress=callbacks.progress)
        names = samples.names(range(len(samples)))
        write_text(directory.predictions, values_table(zip(names, values.tolist(), strict=True)))

    def card(self, predictor: RegressionPredictor) -> CardFacts:
        """Return the facts of the model card."""
        features = isinstance(predictor.transform, FeatureTransform)
        return CardFacts(predictor.classes, "tabular-regression" if features else "image-regression")

    def examine(
        self, source: Any, target: Any, *, table: str | None, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about two domains."""
        if table is not None:
            raise DataError("--source-table: only for --task segmentation")
        return examine_values(source, target, PairSettings(skip_bad=skip_bad), progress)

    def open_benchmark(self, source: Any, target: Any, test: Any, *, skip_bad: bool) -> BenchData:  # noqa: ARG002
        """Open a benchmark's source and target; models are measured on the whole target."""
        if source is None:
            raise DataError("a contender with `oracle` is for segmentation suites; leave it out")
        return open_benchmark(source, target)

    def measure(self, run: Run, data: BenchData) -> dict[str, Any]:
        """Measure the chosen and the last model of a run on the target."""
        return measure_run(run, data.test)

    def measure_candidate(self, snapshot: Snapshot, pair: Pair, data: BenchData) -> dict[str, float]:
        """Measure R² of a candidate on the whole target."""
        return {"oracle_r2": measure_snapshot(snapshot, pair, data.test)}
