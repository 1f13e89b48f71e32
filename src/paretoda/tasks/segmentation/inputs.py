"""The data of a segmentation run: the pair, with the source's images in the looks that the method wants."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretoda.data.prefetching import Reading
from paretoda.data.segmentation import ScenePair, ScenePairSettings, make_scene_pair
from paretoda.errors import SettingsError
from paretoda.models.segmentation.backbones import find_pixel_backbone
from paretoda.models.segmentation.segmenter import Segmenter
from paretoda.objectives.segmentation.pixel_objective import AtPixels
from paretoda.objectives.target.tcm import Tcm
from paretoda.run.backbone_choice import describe_weights as weights_told
from paretoda.run.names import parse_size
from paretoda.run.settings import Settings, source_only
from paretoda.run.train import train
from paretoda.tasks.classification.inputs import Told
from paretoda.tasks.segmentation.build import make_scene_step, scene_backbone
from paretoda.tasks.segmentation.predictor import ScenePredictor
from paretoda.tasks.segmentation.translation import (
    CYCLEGAN,
    cycle_plan,
    cycle_translation,
    plain_translation,
    translation_name,
)
from paretoda.training.step import Step
from paretoda.types import Snapshot

_ALONE = "There is no target: the model was trained on the source alone, and nothing was adapted."
_AUGMENTS: dict[str, dict[str, Any]] = {
    "none": {"flip": False},
    "flip": {"flip": True},
    "light": {"flip": True, "scales": (0.8, 1.25)},
    "standard": {"flip": True, "scales": (0.5, 1.5)},
}
"""Setting `augment` -> random changes of the source's images."""


@dataclass(frozen=True, eq=False)
class SceneInputs:
    """What a segmentation run reads.

    Args:
        pair: source and target.
        alone: no target was given, and the unlabelled source stands in its place.
    """

    pair: ScenePair
    alone: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the data."""
        return self.pair.notes

    def translated(
        self, settings: Settings, device: torch.device, file: Path | None = None, told: Told | None = None
    ) -> SceneInputs:
        """The same after the CycleGAN was trained, or read from the run's own file, where the settings want one."""
        if self.alone or translation_name(settings) != CYCLEGAN:
            return self
        semantic = None
        if cycle_plan(settings).semantic and not (file is not None and file.exists()):
            semantic = _source_network(settings, self.pair, device)
        made = cycle_translation(settings, self.pair, file, semantic, told)
        # Nothing is read ahead: the network that translates may round otherwise in a thread that has one core.
        return replace(self, pair=replace(self.pair, translation=made, workers=0))

    def predictor(self, step: Step) -> ScenePredictor:
        """A copy of the step's present model for new images of the target."""
        loss = step.objectives.get("target")
        inner = loss.inner if isinstance(loss, AtPixels) else None
        assert isinstance(step.model, Segmenter)
        return ScenePredictor(
            classes=self.pair.classes,
            colours=self.pair.colours,
            transform=self.pair.prediction_transform(),
            model=copy.deepcopy(step.model),
            refiner=copy.deepcopy(inner) if isinstance(inner, Tcm) else None,
        )

    def calibrated(self, predictor: ScenePredictor, snapshot: Snapshot) -> ScenePredictor:  # noqa: ARG002
        """The same: confidences of pixels are not calibrated."""
        return predictor

    def for_source(self, predictor: ScenePredictor) -> ScenePredictor:
        """The same network for new images of the source, whose size may differ."""
        plain = replace(self.pair.source.transform, flip=False, scales=None, crop=None)
        return replace(predictor, transform=plain)


def scene_pair_settings(settings: Settings) -> ScenePairSettings:
    """What the data need to know."""
    augment = settings.augment or "flip"
    if augment not in _AUGMENTS:
        raise SettingsError(f"--augment {augment} is for classification; take one of {', '.join(_AUGMENTS)}")
    return ScenePairSettings(
        seed=settings.seed,
        batch_size=settings.batch_size,
        held_out=settings.held_out,
        size=parse_size(settings.size),
        source_size=parse_size(settings.source_size),
        source_table=settings.source_table,
        convention=settings.convention or find_pixel_backbone(scene_backbone(settings)).convention,
        skip_bad=settings.skip_bad,
        reading=Reading(settings.workers, settings.index_cache),
        **_AUGMENTS[augment],
    )


def open_scene_inputs(
    settings: Settings, source: Any, target: Any, say: Callable[[str], None], told: Told | None = None
) -> SceneInputs:
    """Open the data and say what the user should know of them.

    Args:
        settings: of the run.
        source: labelled.
        target: None: the source stands in its place.
        say: called with each note.
        told: progress of the checking of files.
    """
    wanted = scene_pair_settings(settings)
    progress = None if told is None else partial(told, "checking images")
    if target is None:
        pair = make_scene_pair(source, source, replace(wanted, least_target=2), None, progress)
        pair = replace(pair, notes=(*pair.notes, _ALONE))
    else:
        pair = make_scene_pair(source, target, wanted, plain_translation(settings), progress)
    for note in (*pair.notes, weights_told(settings.backbone, settings.backbone_weights)):
        if note is not None:
            say(note)
    return SceneInputs(pair, alone=target is None)


def _source_network(settings: Settings, pair: ScenePair, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A network of the source alone, trained as long as the run; raw images -> logits."""
    plain = source_only(settings)
    model = train(plain, pair, make_scene_step(plain, pair, device)).step.model.eval().requires_grad_(False)
    transform = pair.source.transform

    def logits(raw: Tensor) -> Tensor:
        found: Tensor = model(transform.normalise(raw))
        return found

    return logits
