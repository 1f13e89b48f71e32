"""What a segmentation run leaves behind: measures against labels, and the pictures of its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import RunError
from paretoda.evaluation.overlap import Scores, confusion
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.label_maps import MapCard, Overlap, make_map_card, to_hex
from paretoda.run.callbacks import Callbacks
from paretoda.tasks.segmentation.inputs import SegmentationInputs
from paretoda.tasks.segmentation.predictor import SegmentationPredictor
from paretoda.types import Progress

SHOWN = 8
"""Number of images on a page."""
_HELD_OUT = 200
"""Largest number of source images that the page's table counts."""


@dataclass(frozen=True)
class MapMeasures:
    """How good a model is on labelled images.

    Args:
        scores: Scores over all images together.
        counts: The pixel counts behind them, see `confusion`.
        confidences: The mean confidence of each image.
    """

    scores: Scores
    counts: torch.Tensor
    confidences: list[float]


def measure_maps(
    model: SegmentationPredictor,
    samples: SceneSamples,
    places: Sequence[int] | None = None,
    *,
    refined: bool = False,
    progress: Progress | None = None,
) -> MapMeasures:
    """Predict labelled images, each once, and compare the predictions with the labels.

    Args:
        model: Predictor of the images' classes.
        samples: Scenes with labels.
        places: Positions of the scenes; None: all.
        refined: Use the refined predictions ρ of Eq. 3.
        progress: Called after each image.
    """
    places = range(len(samples)) if places is None else places
    counts = torch.zeros(len(model.classes), len(model.classes) + 1, dtype=torch.int64)
    confidences = []
    scenes = model.scenes(samples, refined=refined, places=places)
    for done, (place, scene) in enumerate(zip(places, scenes, strict=True), start=1):
        truth = samples.read_labels([place])[0]
        counts += confusion(torch.from_numpy(truth), torch.from_numpy(scene.labels), len(model.classes))
        confidences.append(float(scene.confidence.mean()))
        if progress is not None:
            progress("comparing", done, len(places))
    return MapMeasures(Scores.of(counts), counts, confidences)


def make_overlap(model: SegmentationPredictor, scores: Scores, heading: str, *, oracle: bool) -> Overlap:
    """Return the scores for a page."""
    return Overlap(heading, model.classes, to_hex(model.colours), scores.iou, scores.miou, oracle)


def make_cards(model: SegmentationPredictor, samples: SceneSamples, confidences: Sequence[float]) -> list[MapCard]:
    """Return a few images with their maps, from the least to the most certain, with labels where there are some."""
    order = np.argsort(np.asarray(confidences), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int))]
    found = []
    for place, one in zip(chosen.tolist(), model.scenes(samples, places=chosen.tolist()), strict=True):
        truth = samples.read_labels([place])[0] if samples.labelled else None
        uncertain = (one.entropy, float(one.confidence.mean()))
        found.append(make_map_card(one.name, one.image, one.labels, uncertain, model.colours, truth))
    return found


def make_pictures(model: SegmentationPredictor, inputs: SegmentationInputs | None, facts: RunFacts) -> Pictures:
    """Return the pictures that need no label of the target: some scenes, and the overlap on the held-out source.

    Args:
        model: Predictor of the run.
        inputs: Data of the run; None where they cannot be opened any more.
        facts: Facts of the run, with its predictions.
    """
    if inputs is None:
        return NO_PICTURES
    target = inputs.pair.target.samples
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    held_out = inputs.pair.source_held_out[:_HELD_OUT].tolist()
    overlaps = []
    if held_out:
        found = measure_maps(for_source(model, inputs), inputs.pair.source.samples, held_out)
        overlaps = [make_overlap(model, found.scores, "held-out source", oracle=False)]
    confidences = [confidence for _, _, confidence in facts.predictions]
    return Pictures(map_cards=make_cards(model, target, confidences), overlaps=overlaps)


def add_oracle_pictures(
    pictures: Pictures, model: SegmentationPredictor, labelled: str, callbacks: Callbacks
) -> Pictures:
    """Show labelled images with their labels, and the overlap of classes on them."""
    samples = open_scenes(labelled, labelled=True)
    if samples.classes != model.classes:
        raise RunError(f"{labelled} has other classes than the model: {', '.join(samples.classes)}")
    found = measure_maps(model, samples, progress=callbacks.progress)
    oracle = make_overlap(model, found.scores, "target (oracle)", oracle=True)
    return replace(
        pictures, map_cards=make_cards(model, samples, found.confidences), overlaps=[oracle, *pictures.overlaps]
    )


def for_source(model: SegmentationPredictor, inputs: SegmentationInputs) -> SegmentationPredictor:
    """Return the same network for new images of the source, whose size may differ."""
    return replace(model, transform=replace(inputs.pair.source.transform, flip=False, scales=None, crop=None))
