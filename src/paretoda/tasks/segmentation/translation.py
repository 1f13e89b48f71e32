"""The translation of source images in a segmentation run, and the CycleGAN that CyCADA trains first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from paretoda.core.options import with_options
from paretoda.core.seeds import derive_seed
from paretoda.data.pair import Part
from paretoda.data.segmentation import ScenePair
from paretoda.data.segmentation.translation import TRANSLATIONS, Translation
from paretoda.errors import RunError, SettingsError
from paretoda.io.files import atomic_file
from paretoda.models.cyclegan import CycleGan, CycleTranslation
from paretoda.run.settings import Settings
from paretoda.training.cyclegan import random_patches, train_cyclegan
from paretoda.types import Progress

_OF_METHOD = {"fda": "fda", "cycada": "cyclegan"}
"""Method -> the translation that belongs to it."""
CYCLEGAN = "cyclegan"
_PARTS: tuple[Part, Part] = ("source", "target")

Semantic = Callable[[Tensor], Tensor]


def translation_name(settings: Settings) -> str:
    """Return the name of the run's translation."""
    return _OF_METHOD.get(settings.method, "none") if settings.translation == "auto" else settings.translation


def plain_translation(settings: Settings) -> Translation | None:
    """Make a translation that needs no training; None for none, and for the CycleGAN, which is trained later."""
    name, options = translation_name(settings), settings.part_options["translation"]
    if name == CYCLEGAN:
        return None
    factory = TRANSLATIONS[name]
    if factory is None:
        if options:
            raise SettingsError("options of a translation need one: add --translation fda, for example")
        return None
    try:
        made: Translation = with_options(name, factory, {}, options)
    except TypeError as error:
        raise SettingsError(f"{', '.join(settings.options)}: {error}") from error
    return made


@dataclass(frozen=True)
class CyclePlan:
    """How the CycleGAN is trained: the options of the translation "cyclegan".

    Args:
        steps: Number of training steps.
        patch: Side of the square patches that it sees.
        batch: Patches of each domain in a step.
        semantic: Whether a source-only network, trained before, must predict the same before and after translation.
    """

    steps: int = 1000
    patch: int = 64
    batch: int = 4
    semantic: bool = False


def cycle_plan(settings: Settings) -> CyclePlan:
    """Return the plan that the settings' options ask for."""
    return with_options(CYCLEGAN, CyclePlan, {}, settings.part_options["translation"])


def cycle_translation(
    settings: Settings,
    pair: ScenePair,
    file: Path | None = None,
    semantic: Semantic | None = None,
    progress: Progress | None = None,
) -> CycleTranslation:
    """Return the CycleGAN's translation into the target: read from its file, or trained and written there.

    Args:
        settings: Settings with the options of `CyclePlan`.
        pair: Pair whose training images it learns from.
        file: File in the run's directory; None: nothing is kept.
        semantic: See `train_cyclegan`.
        progress: Called after each step.
    """
    if file is not None and file.exists():
        gan = CycleGan()
        try:
            gan.load_state_dict(load_tensors(file.read_bytes()))
        except Exception as error:  # whatever a damaged file leads to
            raise RunError(f"{file} cannot be read; remove it, and the translation is learned again") from error
        return CycleTranslation(gan.to_target)
    plan = cycle_plan(settings)

    def report(step: int, _losses: Any) -> None:
        if progress is not None:
            progress("learning the translation", step, plan.steps)

    source, target = (_squares(pair, part, plan, settings.seed) for part in _PARTS)
    gan = train_cyclegan(source, target, plan.steps, semantic, settings.seed, report)
    if file is not None:
        with atomic_file(file) as out:
            out.write(save_tensors({name: tensor.cpu().contiguous() for name, tensor in gan.state_dict().items()}))
    return CycleTranslation(gan.to_target)


def _squares(pair: ScenePair, part: Part, plan: CyclePlan, seed: int) -> Callable[[int], Tensor]:
    """Return a function that reads patches of some training images for a step."""
    rows, places = (pair.source if part == "source" else pair.target), pair.positions(part)

    def of_step(step: int) -> Tensor:
        own = derive_seed(seed, f"cyclegan-{part}", step)
        chosen = np.random.default_rng(own).integers(len(places), size=plan.batch)
        return random_patches(rows.pixels(places[chosen]), plan.batch, plan.patch, own)(step)

    return of_step
