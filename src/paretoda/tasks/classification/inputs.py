"""The data of a classification run: the pair as given, and the features of a frozen backbone where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import torch

from paretoda.data import DomainPair, PairSettings, make_pair
from paretoda.data.build_pair import open_source
from paretoda.data.open.arrays import ArraySamples
from paretoda.data.open.samples import open_samples
from paretoda.data.rows import Rows, make_feature_rows, make_image_rows
from paretoda.data.samples import Samples
from paretoda.data.scaling import FeatureTransform
from paretoda.data.target_labels import describe_target_labels, divide_labels, label_rows, open_target_labels
from paretoda.data.transforms import ImageTransform
from paretoda.errors import SettingsError
from paretoda.models.backbones import default_backbone, make_backbone
from paretoda.run.backbone_choice import check_frozen, describe_weights
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.settings import LABELS, Settings
from paretoda.run.task import NO_TARGET
from paretoda.tasks.classification.build import make_pair_settings
from paretoda.tasks.classification.frozen_backbone import FrozenBackbone
from paretoda.tasks.classification.given_run import load_given_run, open_given_run
from paretoda.tasks.classification.label_sets import check_classes
from paretoda.tasks.classification.predictor import ClassificationPredictor
from paretoda.types import Progress

MakePair: TypeAlias = Callable[[Any, Any, PairSettings, Progress | None], DomainPair]
"""Source, target, settings and progress -> their pair."""


@dataclass(frozen=True, eq=False)
class ClassificationInputs:
    """The data of a classification run.

    Args:
        raw: The data as the user gave them.
        pair: What is trained on: `raw`, or the features that a frozen backbone made of it.
        frozen: The frozen backbone; None without one.
        has_target: Whether a target was given; without one the unlabelled source stands in its place.
        crops: Crops of an image that a prediction is averaged over.
        given: The predictor of the run that stands in the source's place; None where there is a source.
    """

    raw: DomainPair
    pair: DomainPair
    frozen: FrozenBackbone | None = None
    has_target: bool = True
    crops: int = 1
    given: ClassificationPredictor | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the data for the user."""
        return self.raw.notes


def open_inputs(
    settings: Settings,
    source: Any,
    target: Any,
    device: torch.device,
    callbacks: Callbacks = NO_CALLBACKS,
    make: MakePair = make_pair,
) -> ClassificationInputs:
    """Open the data, say what the user should know of them, and compute the features of a frozen backbone.

    Args:
        settings: Settings of the run.
        source: Labelled data.
        target: Unlabelled data; None: the source stands in their place.
        device: Device of the frozen backbone.
        callbacks: Receive notes, and the progress of checking images and computing features.
        make: Makes the pair of source and target.
    """
    if settings.from_run is not None:
        return _open_without_source(settings, target, device, callbacks)
    raw = _open_pair(settings, source, target, callbacks.progress, make)
    for note in raw.notes:
        callbacks.notify(note)
    _check_crops(settings, raw)
    check_classes(settings, raw.classes)
    begins = None if raw.kind == "features" else describe_weights(_backbone(settings, raw), settings.backbone_weights)
    if begins is not None:
        callbacks.notify(begins)
    has_target = target is not None
    if not settings.frozen:
        return ClassificationInputs(raw, raw, has_target=has_target, crops=settings.crops)
    pair, frozen = _freeze(settings, raw, device, callbacks.progress)
    return ClassificationInputs(raw, pair, frozen, has_target=has_target, crops=settings.crops)


def _open_without_source(
    settings: Settings, target: Any, device: torch.device, callbacks: Callbacks
) -> ClassificationInputs:
    """Open the target as the run of `--from` reads it."""
    assert settings.from_run is not None
    given = load_given_run(settings.from_run, device)
    raw, pair = open_given_run(given, make_pair_settings(settings), target, callbacks.progress)
    for note in raw.notes:
        callbacks.notify(note)
    crops = given.crops if settings.crops == 1 else settings.crops
    return ClassificationInputs(raw, pair, given.backbone, crops=crops, given=given)


def add_target_labels(
    settings: Settings, inputs: ClassificationInputs, labels: Any, callbacks: Callbacks = NO_CALLBACKS
) -> ClassificationInputs:
    """Return the inputs with the target samples whose labels the user has given, and say what they are for.

    Args:
        settings: Settings of the run.
        inputs: The data of the run.
        labels: Labelled data of the target.
        callbacks: Receive notes, and the progress of checking images and computing features.
    """
    raw, pair = inputs.raw, inputs.pair
    samples, found = open_target_labels(
        labels, raw.target.samples, pair.classes, skip_bad=settings.skip_bad, progress=callbacks.progress
    )
    guides = settings.guide == LABELS
    train, held_out = divide_labels(
        found.values,
        raw.settings.seed_of_split,
        train=bool(settings.label_loss),
        hold_out=guides or settings.selects_by_labels,
    )
    rows = _make_labelled_rows(inputs, samples, callbacks.progress)
    few = label_rows(rows, found.values, train, held_out, guides=guides)
    notes = (*samples.notes, *describe_target_labels(few, set(found.values.tolist()), pair.classes))
    for note in notes:
        callbacks.notify(note)
    return replace(inputs, raw=replace(raw, notes=(*raw.notes, *notes)), pair=replace(pair, labelled=few))


def _make_labelled_rows(inputs: ClassificationInputs, samples: Samples, progress: Progress | None) -> Rows:
    """Return the samples as the network reads the target: scaled features, images, or features of images."""
    transform = inputs.pair.target.transform
    if isinstance(transform, ImageTransform):
        return make_image_rows(samples, transform)
    if inputs.frozen is not None:
        own, every, what = inputs.raw.target.transform, range(len(samples)), "features of the labelled target"
        samples = ArraySamples(inputs.frozen.features(samples, own, every, progress=progress, what=what).numpy())
    assert isinstance(transform, FeatureTransform)
    return make_feature_rows(samples, transform)


def _check_crops(settings: Settings, raw: DomainPair) -> None:
    """Refuse ten crops of images that are not resized to more than the network reads; nothing else would show it."""
    if settings.crops > 1 and raw.kind == "features":
        raise SettingsError("the data are features, which have no crops; leave out --crops")
    transform = raw.target.transform
    if settings.crops > 1 and isinstance(transform, ImageTransform) and transform.resized == transform.size:
        raise SettingsError(
            "ten crops need larger images than the network reads: take --augment flip, light, standard or strong"
            + (" and leave out --frozen" if settings.frozen else "")
        )


def _open_pair(settings: Settings, source: Any, target: Any, progress: Progress | None, make: MakePair) -> DomainPair:
    """Open the pair; a source in the target's place may be small, and both get one scaling."""
    wanted = make_pair_settings(settings)
    if target is not None:
        return make(source, target, wanted, progress)
    scaling = wanted.scaling if wanted.scaling == "none" else "source"
    if isinstance(source, list):
        source = open_source(
            source, partial(open_samples, labelled=True, skip_bad=settings.skip_bad, progress=progress)
        )
    pair = make(source, source, replace(wanted, least_target=2, scaling=scaling), progress)
    return replace(pair, notes=(*pair.notes, NO_TARGET))


def _freeze(
    settings: Settings, pair: DomainPair, device: torch.device, progress: Progress | None
) -> tuple[DomainPair, FrozenBackbone]:
    """Return the pair of a frozen backbone's features, and the backbone."""
    if pair.kind == "features":
        raise SettingsError("the data are features already; leave out --frozen")
    name = _backbone(settings, pair)
    check_frozen(name, settings.backbone_weights)
    backbone = FrozenBackbone(name, make_backbone(name, pair.input_shape, settings.backbone_weights).to(device))
    source, target = (
        backbone.features(rows.samples, rows.transform, threads=pair.workers, progress=progress, what=what)
        for rows, what in ((pair.source, "features of the source"), (pair.target, "features of the target"))
    )
    return pair.with_features(source, target), backbone


def _backbone(settings: Settings, pair: DomainPair) -> str:
    return default_backbone(pair.input_shape) if settings.backbone == "auto" else settings.backbone
