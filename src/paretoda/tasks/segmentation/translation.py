"""Which translation a segmentation run gives its source images, and the CycleGAN that CyCADA trains first."""

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
from paretoda.io.files import whole_file
from paretoda.models.cyclegan import CycleGan, CycleTranslation
from paretoda.run.settings import Settings
from paretoda.training.cyclegan import patches, train_cyclegan

_OF_METHOD = {"fda": "fda", "cycada": "cyclegan"}
"""Method -> the translation that belongs to it."""
CYCLEGAN = "cyclegan"
_PARTS: tuple[Part, Part] = ("source", "target")

Semantic = Callable[[Tensor], Tensor]
Told = Callable[[str, int, int], None]


def translation_name(settings: Settings) -> str:
    """The translation of the run."""
    return _OF_METHOD.get(settings.method, "none") if settings.translation == "auto" else settings.translation


def plain_translation(settings: Settings) -> Translation | None:
    """A translation that needs no training; None for none, and for the CycleGAN, which comes with the data."""
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
        steps: of its training.
        patch: side of the squares that it sees.
        batch: squares of each domain in a step.
        semantic: a source-only network, trained before, must see the same before and after translation.
    """

    steps: int = 1000
    patch: int = 64
    batch: int = 4
    semantic: bool = False


def cycle_plan(settings: Settings) -> CyclePlan:
    """The plan that the settings' options ask for."""
    return with_options(CYCLEGAN, CyclePlan, {}, settings.part_options["translation"])


def cycle_translation(
    settings: Settings,
    pair: ScenePair,
    file: Path | None = None,
    semantic: Semantic | None = None,
    told: Told | None = None,
) -> CycleTranslation:
    """The CycleGAN's translation into the target: read from the file where it is, or trained and written there.

    Args:
        settings: with the options of `CyclePlan`.
        pair: whose training images it learns from.
        file: in the run's directory; None: nothing is kept.
        semantic: see `train_cyclegan`.
        told: progress.
    """
    if file is not None and file.exists():
        gan = CycleGan()
        try:
            gan.load_state_dict(load_tensors(file.read_bytes()))
        except Exception as error:  # whatever a damaged file leads to
            raise RunError(f"{file} cannot be read; remove it, and the translation is learned again") from error
        return CycleTranslation(gan.to_target)
    plan = cycle_plan(settings)

    def progress(step: int, _losses: Any) -> None:
        if told is not None:
            told("learning the translation", step, plan.steps)

    source, target = (_squares(pair, part, plan, settings.seed) for part in _PARTS)
    gan = train_cyclegan(source, target, plan.steps, semantic, settings.seed, progress)
    if file is not None:
        with whole_file(file) as out:
            out.write(save_tensors({name: tensor.cpu().contiguous() for name, tensor in gan.state_dict().items()}))
    return CycleTranslation(gan.to_target)


def _squares(pair: ScenePair, part: Part, plan: CyclePlan, seed: int) -> Callable[[int], Tensor]:
    """For each step squares of some training images, which are read only then."""
    rows, places = (pair.source if part == "source" else pair.target), pair.places(part)

    def of_step(step: int) -> Tensor:
        own = derive_seed(seed, f"cyclegan-{part}", step)
        chosen = np.random.default_rng(own).integers(len(places), size=plan.batch)
        return patches(rows.pixels(places[chosen]), plan.batch, plan.patch, own)(step)

    return of_step
