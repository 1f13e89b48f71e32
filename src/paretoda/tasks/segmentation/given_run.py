"""A finished run that another one begins with, in the place of a source: its network, and the target as it reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.core.options import name_some
from paretoda.data.build_pair import limit_batch_size
from paretoda.data.doctor.findings import Finding, attempt, sort_findings
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.segmentation import ScenePair, ScenePairSettings, SceneSamples, open_scenes
from paretoda.data.segmentation.build_pair import split_scenes
from paretoda.data.segmentation.doctor import examine_target_scenes
from paretoda.data.segmentation.label_tables import make_plain_table
from paretoda.data.segmentation.pair import make_scene_rows
from paretoda.data.segmentation.samples import FileScenes, PredictedScenes
from paretoda.errors import DataError
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.run.given_run import read_given_run
from paretoda.run.settings import Settings
from paretoda.tasks.segmentation.predictor import SegmentationPredictor, load_predictor
from paretoda.types import Progress

DEFAULTS: Mapping[str, Any] = {"method": "source-only", "target_loss": "im", "joined": False, "head_losses": None}
"""Settings of a run that begins with another one, where the user gives no others."""
_ON_TARGET_ALONE = ("source-only", "minent", "cbst", "crst")
"""Methods that read no source."""
KEPT_SETTINGS = (
    "backbone",
    "backbone_weights",
    "size",
    "source_size",
    "source_table",
    "levels",
    "norm",
    "convention",
    "class_weights",
    "translation",
    "teachers",
    "augment",
    "joined",
)
"""Settings that are those of the given run, or that only a source has a use for."""
_AT_ONCE = 8


def check_given_run(settings: Settings) -> None:
    """Raise ValueError for settings that make no sense without a source."""
    if settings.method not in _ON_TARGET_ALONE:
        raise ValueError(
            f"the method {settings.method!r} needs a source, and --from has none; take one of "
            f"{', '.join(_ON_TARGET_ALONE)}"
        )
    if "tcm" in (*settings.target_losses.values(), settings.guide):
        raise ValueError("'tcm' compares the target with a source, and --from has none; take im")


def load_given_run(place: str, device: torch.device | None = None) -> SegmentationPredictor:
    """Load the predictor of the run; nothing in its files is executed.

    Args:
        place: Directory of a finished run.
        device: Device of the network; None: the CPU.

    Raises:
        RunError: There is no finished run for segmentation.
    """
    return read_given_run(place, lambda run: load_predictor(run.model, run.description, device))


def open_given_run(
    given: SegmentationPredictor, settings: ScenePairSettings, target: Any, progress: Progress | None = None
) -> ScenePair:
    """Return the target as a pair with itself, as the given run's network reads it.

    The pair's source is the target again, with the label maps that the given run predicts, for parts that need labels,
    such as class frequencies. No true label is in it.

    Args:
        given: The predictor of the given run.
        settings: Settings of the pair.
        target: Unlabelled images.
        progress: Called while files are checked and label maps predicted.

    Raises:
        DataError: The data cannot be used.
    """
    scenes = open_scenes(
        target,
        labelled=False,
        skip_bad=settings.skip_bad,
        index_cache=settings.reading.index_cache,
        progress=progress,
    )
    _check_scenes(given, scenes, settings.least_target)
    train, held = split_scenes(
        scenes.names(range(len(scenes))), settings.held_out, settings.seed_of_split, "split-target"
    )
    settings, lowered = limit_batch_size(settings, len(train), "images")
    workers = settings.reading.threads(files=isinstance(scenes, FileScenes))
    table = make_plain_table(given.classes)
    predicted = PredictedScenes(scenes, _predict_maps(given, scenes, workers, progress), table)
    return ScenePair(
        settings=replace(settings, size=given.transform.size),
        classes=given.classes,
        colours=given.colours,
        source=make_scene_rows(predicted, given.transform),
        target=make_scene_rows(scenes, given.transform),
        source_train=train,
        source_held_out=held,
        target_train=train,
        target_held_out=held,
        notes=(*scenes.notes, *lowered),
        workers=workers,
    )


def examine_given_run(place: str, target: Any, settings: ScenePairSettings, progress: Progress | None) -> list[Finding]:
    """Return all findings about a finished run and the images that it is to be adapted to, errors first.

    Args:
        place: Directory of the run.
        target: Unlabelled images.
        settings: Settings of the pair, of which `skip_bad` and `least_target` are used.
        progress: Called while files are decoded.
    """
    found: list[Finding] = []
    given = attempt(partial(load_given_run, place), "run", found)
    scenes = examine_target_scenes(target, settings, found, progress)
    if given is not None:
        text = f"The run predicts {len(given.classes)} classes: {name_some(given.classes)}."
        found.append(Finding("info", "run", text))
    if scenes is not None:
        attempt(partial(_check_scenes, given, scenes, settings.least_target), "both", found)
    return sort_findings(found)


def _check_scenes(given: SegmentationPredictor | None, scenes: SceneSamples, least: int) -> None:
    """Raise a `DataError` where there are too few images, or where they have other classes than the given run."""
    if len(scenes) < max(2, least):
        raise DataError(f"the target has {len(scenes)} images; collect at least {max(2, least)}")
    if given is not None and scenes.classes and len(scenes.classes) != len(given.classes):
        raise DataError(
            f"--from: the run has {len(given.classes)} classes ({name_some(given.classes)}), the target has "
            f"{len(scenes.classes)} ({name_some(scenes.classes)}); give the target as a list of images"
        )


def _predict_maps(
    given: SegmentationPredictor, scenes: SceneSamples, workers: int, progress: Progress | None
) -> NDArray[np.uint8]:
    """Return the most probable classes at the resolution of the network's maps, shape (n, h, w)."""
    device, found = next(given.model.parameters()).device, []

    def read(places: NDArray[np.int64]) -> torch.Tensor:
        return given.transform.evaluate(scenes.read(places))

    with evaluation_mode(given.model):
        for inputs in prefetch_batches(read, np.arange(len(scenes)), _AT_ONCE, workers):
            found.append(given.model(inputs.to(device)).argmax(dim=1).to(torch.uint8).cpu().numpy())
            if progress is not None:
                progress("label maps of the given run", min(_AT_ONCE * len(found), len(scenes)), len(scenes))
    return np.concatenate(found)
