"""Self-training in segmentation runs: teachers that label the target (FDA's rounds), and what CBST labelled."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from paretoda.data.segmentation import ScenePair
from paretoda.errors import RunError
from paretoda.maps import resize_labels
from paretoda.models.segmentation.segmenter import Segmenter
from paretoda.objectives.segmentation import FdaEntropy
from paretoda.objectives.segmentation.cbst import Cbst
from paretoda.objectives.segmentation.pseudo_labels import labels_above, upper_thresholds
from paretoda.run.callbacks import Callbacks
from paretoda.run.settings import Settings
from paretoda.tasks import SEGMENTATION
from paretoda.tasks.loading import load_ensemble
from paretoda.tasks.segmentation.build import map_size
from paretoda.tasks.segmentation.predictor import SegmentationPredictor
from paretoda.training.step import Step
from paretoda.types import IGNORE, Objective, Progress

LABELLING = "labelling the target"


def describe_self_training(objectives: Iterable[Objective]) -> str | None:
    """Say how many target pixels had a label in the last round of CBST or CRST; None without rounds."""
    found = [module for objective in objectives for module in objective.modules() if isinstance(module, Cbst)]
    if not found:
        return None
    if not len(found[0].labels):
        return "No pixel of the target was labelled: the training ended before the first round of self-training."
    share = found[0].share
    return f"In the last round {share:.1%} of the target's pixels had a label, and {1 - share:.1%} were ignored."


def open_teachers(settings: Settings, pair: ScenePair, device: torch.device) -> SegmentationPredictor | None:
    """Load the mean of the teachers; None where the settings name none."""
    if not settings.teachers:
        return None
    try:
        task, found = load_ensemble([Path(path) for path in settings.teachers], device)
    except RunError as error:
        raise RunError(f"--teachers: {error}") from error
    if task.name != SEGMENTATION:
        raise RunError(
            f"--teachers: the run in {settings.teachers[0]} is one of {task.name}; teachers are runs of segmentation"
        )
    if found.classes != pair.classes:
        raise RunError(
            f"--teachers: they have the classes {', '.join(found.classes)}, the source has {', '.join(pair.classes)}"
        )
    predictor: SegmentationPredictor = found
    return predictor


def label_target(
    teachers: SegmentationPredictor, settings: Settings, pair: ScenePair, step: Step, callbacks: Callbacks
) -> None:
    """Give the step's objective the teachers' labels of the target's training images."""
    assert isinstance(step.model, Segmenter)
    labels = teacher_labels(teachers, pair, map_size(pair, step.model), settings.workers, callbacks.progress)
    for objective in step.objectives.values():
        for part in objective.modules():
            if isinstance(part, FdaEntropy):
                part.labels.replace(labels)
    share = float((labels != IGNORE).float().mean())
    runs = len(settings.teachers)
    whose = "One run" if runs == 1 else f"The mean of {runs} runs"
    callbacks.notify(f"{whose} labelled {share:.0%} of the target's pixels.")


def teacher_labels(
    teachers: SegmentationPredictor,
    pair: ScenePair,
    size: tuple[int, int],
    workers: int | None,
    progress: Progress | None,
) -> Tensor:
    """Label the upper third of every predicted class, and all pixels above 0.9; `IGNORE` elsewhere.

    Args:
        teachers: Predictor at the images' own sizes.
        pair: Pair whose target training images are labelled; the held-out ones are not even read.
        size: Height and width of the maps, whose positions take the nearest pixel.
        workers: Threads that read ahead; None: as many as fit.
        progress: Called after each image.

    Returns:
        Shape (n, h, w), uint8, in the order of the target's training part.
    """
    places = pair.positions("target").tolist()
    predicted = torch.empty(len(places), *size, dtype=torch.uint8)
    confidence = torch.empty(len(places), *size)
    for place, scene in enumerate(teachers.scenes(pair.target.samples, places=places, workers=workers)):
        predicted[place], confidence[place] = (
            resize_labels(torch.from_numpy(maps)[None], size)[0] for maps in (scene.labels, scene.confidence)
        )
        if progress is not None:
            progress(LABELLING, place + 1, len(places))
    log_p = confidence.log_()
    log_t = upper_thresholds(log_p, predicted, len(pair.classes))
    # One image at a time: classes of all of them as int64 would be eight times as large.
    return torch.stack(
        [labels_above(one, classes.long(), log_t) for one, classes in zip(log_p, predicted, strict=True)]
    )
