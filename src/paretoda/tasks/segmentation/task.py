"""The task of classifying every pixel of an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paretoda.data.doctor.findings import Finding
from paretoda.data.segmentation import ScenePairSettings, examine_scenes
from paretoda.data.segmentation.doctor import examine_labelled_scenes
from paretoda.data.segmentation.label_tables import find_table
from paretoda.errors import RunError, SettingsError
from paretoda.evaluation.validators import PIXEL_VALIDATORS
from paretoda.io.files import write_text
from paretoda.models.segmentation.segmenter import Segmenter
from paretoda.objectives.segmentation import (
    SEGMENTATION_GUIDES,
    SEGMENTATION_METHODS,
    SEGMENTATION_TARGET_LOSSES,
    PixelLabels,
)
from paretoda.objectives.segmentation.pixel_objective import AtPixels
from paretoda.objectives.target.tcm import Tcm
from paretoda.report.card import CardFacts
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import predictions_table
from paretoda.run.result import Run
from paretoda.run.settings import LABELS, Settings, name_target_losses
from paretoda.run.task import PredictOptions, Tables, Task, Usage
from paretoda.schemes import SCHEMES
from paretoda.tasks import SEGMENTATION
from paretoda.tasks.segmentation.build import build
from paretoda.tasks.segmentation.evaluation import (
    add_oracle_pictures,
    evaluate_data,
    for_source,
    make_pictures,
    measure,
    open_benchmark,
    predict_data,
)
from paretoda.tasks.segmentation.export import SegmentationProgram
from paretoda.tasks.segmentation.given_run import DEFAULTS, KEPT_SETTINGS, check_given_run, examine_given_run
from paretoda.tasks.segmentation.inputs import (
    SegmentationInputs,
    add_cycle_translation,
    add_target_labels,
    open_inputs,
)
from paretoda.tasks.segmentation.map_files import write_maps
from paretoda.tasks.segmentation.predictor import SegmentationPredictor, average, load_predictor
from paretoda.tasks.segmentation.teachers import describe_self_training, label_target, open_teachers
from paretoda.tasks.segmentation.translation import translation_name
from paretoda.training.step import Step
from paretoda.types import Objective, Progress

_BACKBONES = {
    "auto": "dilated.",
    "dilated": "A small dilated ResNet for CPUs, 155 thousand parameters, one feature for 4x4 pixels.",
    "efficientnet-lite0": "EfficientNet-Lite0 with weights from ImageNet, its stages' maps mixed, as fine.",
    "deeplab-resnet50": "DeepLab-v2 on ResNet-50, one feature for 8x8 pixels.",
    "deeplab-resnet101": "DeepLab-v2 on ResNet-101, the paper's network.",
}
_DEFAULTS: Mapping[str, Any] = {
    "method": "advent",
    "target_loss": "tcm",
    "batch_size": 4,
    "bn": "per-domain",
    "weight_decay": 5e-4,
    "schedule": "poly",
    "refresh_every": 100,
}
_TAUGHT = [name for name, make in SEGMENTATION_TARGET_LOSSES.items() if getattr(make, "follows_teacher", False)]
"""Losses on labels of the averaged teacher."""
_DEFAULTS_OF_PARETODA: Mapping[str, Any] = {"joined": True, "voting": "all"}
"""Defaults under the scheme 'paretoda': source loss and alignment form one objective. It trains the head, and so do
losses on labels, whether a user or the averaged teacher gives them.

The weights hardly change from step to step, and a step that holds them costs half as much.
"""


class Segmentation(Task[SegmentationInputs, SegmentationPredictor]):
    """Images with a class for each pixel.

    Args:
        shared: Folder of CycleGANs that several runs share; None: each run trains its own.
    """

    name = SEGMENTATION
    smallest_batch = 1
    kept_settings = KEPT_SETTINGS
    classes_title = "Largest class of each image"
    own_parts = ("source", "translation")

    build = staticmethod(build)
    add_target_labels = staticmethod(add_target_labels)
    average = staticmethod(average)
    pictures = staticmethod(make_pictures)
    oracle_pictures = staticmethod(add_oracle_pictures)
    predict_data = staticmethod(predict_data)
    evaluate_data = staticmethod(evaluate_data)
    make_program = staticmethod(SegmentationProgram)
    open_benchmark = staticmethod(open_benchmark)
    measure = staticmethod(measure)

    def __init__(self, shared: Path | None = None) -> None:
        self._shared = shared

    def with_shared_folder(self, folder: Path) -> Segmentation:
        """Return the task whose runs train equal CycleGANs once and keep them in this folder."""
        return Segmentation(folder)

    @property
    def tables(self) -> Tables:
        """The names that settings take."""
        return Tables(
            SEGMENTATION_METHODS,
            SEGMENTATION_TARGET_LOSSES,
            {**SEGMENTATION_GUIDES, LABELS: PixelLabels},
            SCHEMES,
            PIXEL_VALIDATORS,
            _BACKBONES,
        )

    def defaults(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults that differ from those of `Settings`."""
        if values.get("from_run") is not None:
            return {**_DEFAULTS, **DEFAULTS}
        if values.get("scheme", "paretoda") != "paretoda":
            return _DEFAULTS
        losses = name_target_losses(str(values.get("target_loss", _DEFAULTS["target_loss"])))
        labels = [LABELS] if values.get("label_loss") else []
        heads = {"head_losses": ("source", *(part for part, name in losses.items() if name in _TAUGHT), *labels)}
        return {**_DEFAULTS, **_DEFAULTS_OF_PARETODA, **heads}

    def check(self, settings: Settings) -> None:
        """Raise ValueError for teachers without 'fda', an unknown label table, or what needs a source beside --from."""
        if settings.from_run is not None:
            check_given_run(settings)
        if settings.source_table is not None:
            find_table(settings.source_table)
        if settings.teachers and settings.method != "fda":
            raise ValueError(f"teachers are for the method 'fda', not for {settings.method!r}; leave out --teachers")

    def open(
        self,
        settings: Settings,
        source: Any,
        target: Any,
        device: torch.device,
        callbacks: Callbacks = NO_CALLBACKS,
        *,
        resuming: bool = False,
    ) -> SegmentationInputs:
        """Open and check the data and the teachers; a checkpoint has the labels of the teachers already."""
        inputs = open_inputs(settings, source, target, callbacks, device)
        return inputs if resuming else replace(inputs, teachers=open_teachers(settings, inputs.pair, device))

    def check_processes(self, settings: Settings) -> None:
        """Refuse translations, which pair the images of a whole batch."""
        if translation_name(settings) != "none":
            raise SettingsError(
                "a translation takes its partners from the whole batch and runs in one process only: take "
                "--translation none, or start without torchrun"
            )

    def prepare(
        self,
        settings: Settings,
        inputs: SegmentationInputs,
        step: Step,
        directory: RunDirectory | None,
        callbacks: Callbacks,
    ) -> SegmentationInputs:
        """Train the CycleGAN of CyCADA and let the teachers of FDA label the target."""
        file = None if directory is None else directory.translation
        inputs = add_cycle_translation(inputs, settings, step.device, file, self._shared, callbacks.progress)
        if inputs.teachers is not None:
            label_target(inputs.teachers, settings, inputs.pair, step, callbacks)
        return inputs

    def for_sources(
        self, predictor: SegmentationPredictor, inputs: SegmentationInputs
    ) -> tuple[SegmentationPredictor, ...]:
        """Return the same networks for new images of the source."""
        return (for_source(predictor, inputs),)

    def predictor(self, step: Step, inputs: SegmentationInputs) -> SegmentationPredictor:
        """Copy the step's present model into a predictor for new images of the target."""
        loss = step.objectives.get("target")
        refiner = loss.inner if isinstance(loss, AtPixels) else None
        assert isinstance(step.model, Segmenter)
        return SegmentationPredictor(
            classes=inputs.pair.classes,
            colours=inputs.pair.colours,
            transform=inputs.pair.prediction_transform(),
            model=deepcopy(step.model),
            refiner=deepcopy(refiner) if isinstance(refiner, Tcm) else None,
        )

    def describe_objectives(self, objectives: Iterable[Objective]) -> Sequence[str]:
        """Return what self-training has labelled."""
        sentence = describe_self_training(objectives)
        return () if sentence is None else (sentence,)

    def load(self, directory: RunDirectory, device: torch.device) -> SegmentationPredictor:
        """Load the model of a finished run; nothing in its files is executed."""
        return load_predictor(directory.model, directory.description, device)

    def write_predictions(
        self, directory: RunDirectory, run: Run, inputs: SegmentationInputs, callbacks: Callbacks
    ) -> None:
        """Write a label map for each target image, and predictions.csv."""
        samples = inputs.pair.target.samples
        scenes = run.model.scenes(samples, workers=run.settings.workers)
        rows = write_maps(
            scenes, run.model, directory.maps, overlays=False, count=len(samples), progress=callbacks.progress
        )
        write_text(directory.predictions, predictions_table(rows))

    def card(self, predictor: SegmentationPredictor) -> CardFacts:
        """Return the facts of the model card."""
        return CardFacts(predictor.classes, "image-segmentation", output="FOLDER")

    def usage(self, directory: RunDirectory, predictor: SegmentationPredictor) -> Usage:  # noqa: ARG002
        """Return what a user can do next with a finished run."""
        return Usage(directory.maps, out=" --out FOLDER")

    def examine(
        self, source: Any, target: Any, *, table: str | None, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about two domains of scenes."""
        return examine_scenes(source, target, ScenePairSettings(source_table=table, skip_bad=skip_bad), progress)

    def examine_target_labels(
        self, labels: Any, source: Any, target: Any, *, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about the labelled images of the target."""
        return examine_labelled_scenes(labels, source, target, ScenePairSettings(skip_bad=skip_bad), progress)

    def examine_given_run(
        self, place: str, target: Any, *, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about a finished run and the target it is to be adapted to."""
        return examine_given_run(place, target, ScenePairSettings(skip_bad=skip_bad), progress)

    def apply_options(self, predictor: SegmentationPredictor, options: PredictOptions) -> SegmentationPredictor:
        """Return the predictor as it is; options of classifiers are refused."""
        given = {"--crops": options.crops, "--preference": options.preference}
        if foreign := [option for option, value in given.items() if value is not None]:
            raise RunError(f"this is a run of segmentation; leave out {' and '.join(foreign)}")
        if options.calibrated:
            raise RunError("confidences of pixels are not calibrated; leave out --calibrated")
        return predictor
