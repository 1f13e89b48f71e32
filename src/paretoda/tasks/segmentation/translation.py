"""The translation of source images in a segmentation run, and the CycleGAN that CyCADA trains first."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from paretoda.core.options import with_options
from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Positions
from paretoda.data.pair import Part
from paretoda.data.segmentation import ScenePair
from paretoda.data.segmentation.translation import TRANSLATIONS, Translation
from paretoda.errors import RunError, SettingsError
from paretoda.io.files import atomic_file
from paretoda.io.lock import NAME, try_lock
from paretoda.models.cyclegan import CycleGan, CycleTranslation
from paretoda.run.settings import Settings, source_only
from paretoda.training.cyclegan import random_patches, train_cyclegan
from paretoda.types import Progress

_OF_METHOD = {"fda": "fda", "cycada": "cyclegan"}
"""Method -> the translation that belongs to it."""
CYCLEGAN = "cyclegan"
_PARTS: tuple[Part, Part] = ("source", "target")
_FILE = "translation.safetensors"
_PATIENCE = 0.5
"""Seconds between two looks whether another process has finished."""

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
    shared: Path | None = None,
    make_semantic: Callable[[], Semantic] | None = None,
    progress: Progress | None = None,
) -> CycleTranslation:
    """Return the CycleGAN's translation into the target: read from its file, or trained and written there.

    Args:
        settings: Settings with the options of `CyclePlan`.
        pair: Pair whose training images it learns from.
        file: File in the run's directory; None: nothing is kept.
        shared: Folder of several runs; those that would train the same CycleGAN train it once. None: of this run only.
        make_semantic: Returns the network that `train_cyclegan` calls `semantic`; None for none.
        progress: Called after each step.
    """
    if file is not None and file.exists():
        return CycleTranslation(_read(file).to_target)
    plan = cycle_plan(settings)

    def train() -> CycleGan:
        def report(step: int, _losses: Any) -> None:
            if progress is not None:
                progress("learning the translation", step, plan.steps)

        source, target = (_squares(pair, part, plan, settings.seed) for part in _PARTS)
        semantic = None if make_semantic is None else make_semantic()
        return train_cyclegan(source, target, plan.steps, semantic, settings.seed, report)

    gan = train() if shared is None else _train_once(shared / _hash_training(settings, pair, plan), train)
    if file is not None:
        _write(file, gan)
    return CycleTranslation(gan.to_target)


def _train_once(folder: Path, train: Callable[[], CycleGan]) -> CycleGan:
    """Read the CycleGAN of this folder; the first process trains it, and the others wait for that one."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / _FILE
    with _wait_for_lock(folder):
        if not file.exists():
            _write(file, train())
    return _read(file)


@contextmanager
def _wait_for_lock(folder: Path) -> Iterator[None]:
    """Inside, no other process works in the folder; before, wait for the one that does."""
    with ExitStack() as stack:
        while not stack.enter_context(try_lock(folder / NAME)):
            time.sleep(_PATIENCE)
        yield


def _read(file: Path) -> CycleGan:
    gan = CycleGan()
    try:
        gan.load_state_dict(load_tensors(file.read_bytes()))
    except Exception as error:  # whatever a damaged file leads to
        raise RunError(f"{file} cannot be read; remove it, and the translation is learned again") from error
    return gan.eval()


def _write(file: Path, gan: CycleGan) -> None:
    with atomic_file(file) as out:
        out.write(save_tensors({name: tensor.cpu().contiguous() for name, tensor in gan.state_dict().items()}))


def _hash_training(settings: Settings, pair: ScenePair, plan: CyclePlan) -> str:
    """Return a hash of everything that decides the weights: the plan, the seed, the images and the semantic network.

    A source-only network has no alignment that `joined` could join.
    """
    network = source_only(settings).model_dump(mode="json", exclude={"joined"}) if plan.semantic else None
    digest = hashlib.sha256(json.dumps([asdict(plan), settings.seed, network], sort_keys=True).encode())
    for part in _PARTS:
        rows, places = (pair.source if part == "source" else pair.target), pair.positions(part)
        drawn = np.unique([_draw(part, step, len(places), plan, settings.seed) for step in range(plan.steps)])
        images = rows.samples.digests(places[drawn])
        digest.update(json.dumps([rows.transform.size, len(places), images]).encode())
    return digest.hexdigest()[:32]


def _draw(part: Part, step: int, count: int, plan: CyclePlan, seed: int) -> Positions:
    """Draw the training images of a step among so many."""
    rng = np.random.default_rng(derive_seed(seed, f"cyclegan-{part}", step))
    return rng.integers(count, size=plan.batch)


def _squares(pair: ScenePair, part: Part, plan: CyclePlan, seed: int) -> Callable[[int], Tensor]:
    """Return a function that reads patches of some training images for a step."""
    rows, places = (pair.source if part == "source" else pair.target), pair.positions(part)

    def of_step(step: int) -> Tensor:
        chosen = places[_draw(part, step, len(places), plan, seed)]
        own = derive_seed(seed, f"cyclegan-{part}", step)
        return random_patches(rows.pixels(chosen), plan.batch, plan.patch, own)(step)

    return of_step
