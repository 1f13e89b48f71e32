"""The data of a segmentation run: the pair, with source images in the appearance that the method asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretoda.data.prefetching import Reading
from paretoda.data.segmentation import ScenePair, ScenePairSettings, make_scene_pair
from paretoda.data.segmentation.target_labels import (
    divide_scenes,
    find_present_classes,
    label_scenes,
    open_labelled_scenes,
)
from paretoda.data.target_labels import describe_target_labels
from paretoda.errors import SettingsError
from paretoda.models.segmentation.backbones import find_pixel_backbone
from paretoda.run.backbone_choice import describe_weights
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.settings import LABELS, Settings, parse_size, source_only
from paretoda.run.task import NO_TARGET
from paretoda.run.train import train
from paretoda.tasks.segmentation.build import backbone_name, build
from paretoda.tasks.segmentation.given_run import load_given_run, open_given_run
from paretoda.tasks.segmentation.predictor import SegmentationPredictor
from paretoda.tasks.segmentation.translation import (
    CYCLEGAN,
    cycle_plan,
    cycle_translation,
    plain_translation,
    translation_name,
)
from paretoda.types import Progress

_AUGMENTS: dict[str, dict[str, Any]] = {
    "none": {"flip": False},
    "flip": {"flip": True},
    "light": {"flip": True, "scales": (0.8, 1.25)},
    "standard": {"flip": True, "scales": (0.5, 1.5)},
}
"""Setting `augment` -> random changes of the source's images."""


@dataclass(frozen=True, eq=False)
class SegmentationInputs:
    """The data of a segmentation run.

    Args:
        pair: Source and target.
        has_target: Whether a target was given; without one the unlabelled source stands in its place.
        has_source: Whether a source was given; without one the target stands in its place.
        teachers: The mean of finished runs that label the target before training; None without any.
    """

    pair: ScenePair
    has_target: bool = True
    has_source: bool = True
    teachers: SegmentationPredictor | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the data for the user."""
        return self.pair.notes


def make_pair_settings(settings: Settings) -> ScenePairSettings:
    """Return the settings of the pair."""
    augment = settings.augment or "flip"
    if augment not in _AUGMENTS:
        raise SettingsError(f"--augment {augment} is for classification; take one of {', '.join(_AUGMENTS)}")
    return ScenePairSettings(
        seed=settings.seed,
        split_seed=settings.split_seed,
        batch_size=settings.batch_size,
        held_out=settings.held_out,
        size=parse_size(settings.size),
        source_size=parse_size(settings.source_size),
        source_table=settings.source_table,
        convention=settings.convention or find_pixel_backbone(backbone_name(settings)).convention,
        skip_bad=settings.skip_bad,
        reading=Reading(settings.workers, settings.index_cache),
        **_AUGMENTS[augment],
    )


def open_inputs(
    settings: Settings,
    source: Any,
    target: Any,
    callbacks: Callbacks = NO_CALLBACKS,
    device: torch.device | None = None,
) -> SegmentationInputs:
    """Open the data and say what the user should know of them.

    Args:
        settings: Settings of the run.
        source: Labelled scenes.
        target: Unlabelled images; None: the source stands in their place.
        callbacks: Receive notes, and the progress of checking files.
        device: Device of the network of a run that stands in the source's place; None: the CPU.
    """
    wanted = make_pair_settings(settings)
    if settings.from_run is not None:
        given = load_given_run(settings.from_run, device)
        pair = open_given_run(given, wanted, target, callbacks.progress)
        for said in pair.notes:
            callbacks.notify(said)
        return SegmentationInputs(pair, has_source=False)
    if target is None:
        pair = make_scene_pair(source, source, replace(wanted, least_target=2), None, callbacks.progress)
        pair = replace(pair, notes=(*pair.notes, NO_TARGET))
    else:
        pair = make_scene_pair(source, target, wanted, plain_translation(settings), callbacks.progress)
    for note in (*pair.notes, describe_weights(settings.backbone, settings.backbone_weights)):
        if note is not None:
            callbacks.notify(note)
    return SegmentationInputs(pair, has_target=target is not None)


def add_target_labels(
    settings: Settings, inputs: SegmentationInputs, labels: Any, callbacks: Callbacks = NO_CALLBACKS
) -> SegmentationInputs:
    """Return the inputs with the target images whose label maps the user has given, and say what they are for.

    Args:
        settings: Settings of the run.
        inputs: The data of the run.
        labels: Labelled scenes of the target.
        callbacks: Receive notes, and the progress of checking files.
    """
    pair, guides = inputs.pair, settings.guide == LABELS
    scenes = open_labelled_scenes(
        labels, pair.classes, table=settings.source_table, skip_bad=settings.skip_bad, progress=callbacks.progress
    )
    train, held_out = divide_scenes(
        len(scenes),
        pair.settings.seed_of_split,
        train=bool(settings.label_loss),
        hold_out=guides or settings.selects_by_labels,
    )
    few = label_scenes(scenes, pair.target.transform, train, held_out, guides=guides)
    notes = [*scenes.notes, *describe_target_labels(few, find_present_classes(few), pair.classes, "images")]
    for note in notes:
        callbacks.notify(note)
    return replace(inputs, pair=replace(pair, labelled=few, notes=(*pair.notes, *notes)))


def add_cycle_translation(
    inputs: SegmentationInputs,
    settings: Settings,
    device: torch.device,
    file: Path | None = None,
    shared: Path | None = None,
    progress: Progress | None = None,
) -> SegmentationInputs:
    """Train the CycleGAN, or read it from the run's own file, where the settings ask for one.

    Args:
        inputs: Data of the run.
        settings: Settings of the run.
        device: Device of the source-only network that keeps the semantics.
        file: File of the CycleGAN in the run's directory; None: it is not kept.
        shared: Folder of several runs that train the same CycleGAN once; None: it is of this run only.
        progress: Called with the progress of its training.

    Returns:
        The inputs whose source images are translated.
    """
    if not inputs.has_target or translation_name(settings) != CYCLEGAN:
        return inputs
    train_network = partial(_train_source_network, settings, inputs.pair, device)
    make_semantic = train_network if cycle_plan(settings).semantic else None
    translation = cycle_translation(settings, inputs.pair, file, shared, make_semantic, progress)
    # Nothing is read ahead: the network that translates may round differently in a thread that has one core.
    return replace(inputs, pair=replace(inputs.pair, translation=translation, workers=0))


def _train_source_network(settings: Settings, pair: ScenePair, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Train a network on the source alone, for as long as the run; return the map from raw images to logits."""
    plain = source_only(settings)
    model = train(plain, pair, build(plain, pair, device)).step.model.eval().requires_grad_(False)
    transform = pair.source.transform

    def logits(raw: Tensor) -> Tensor:
        found: Tensor = model(transform.normalise(raw))
        return found

    return logits
