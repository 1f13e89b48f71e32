"""What a segmentation run leaves behind, and the run itself: measures, a page, the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import DataError
from paretoda.evaluation.overlap import Scores, confusion
from paretoda.io.files import write_json, write_text
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.label_maps import MapCard, Overlap, make_map_card, to_hex
from paretoda.report.page import render_run_page
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.model_card import write_card
from paretoda.run.directory.tables import metrics_table
from paretoda.run.result import RunResult, read_facts
from paretoda.tasks.segmentation.inputs import SceneInputs, open_scene_inputs
from paretoda.tasks.segmentation.label_files import Told, write_maps
from paretoda.tasks.segmentation.predictor import ScenePredictor

SHOWN = 8
"""Images on a page."""
_HELD_OUT = 200
"""Source images that the page's table counts, at most."""


@dataclass(frozen=True)
class Measured:
    """How good a model is on labelled images; labels were used.

    Args:
        scores: over all images as one.
        counts: behind them, see `confusion`.
        confidences: the mean confidence of each image.
    """

    scores: Scores
    counts: torch.Tensor
    confidences: list[float]


def measured(
    model: ScenePredictor,
    samples: SceneSamples,
    places: Sequence[int] | None = None,
    *,
    refined: bool = False,
    told: Told | None = None,
) -> Measured:
    """Predict labelled images and compare; each is predicted once.

    Args:
        model: of their classes.
        samples: with labels.
        places: only these; None: all.
        refined: by the ρ of Eq. 3.
        told: progress.
    """
    places = range(len(samples)) if places is None else places
    counts = torch.zeros(len(model.classes), len(model.classes) + 1, dtype=torch.int64)
    confidences = []
    scenes = model.scenes(samples, refined=refined, places=places)
    for done, (place, scene) in enumerate(zip(places, scenes, strict=True), start=1):
        truth = samples.read_labels([place])[0]
        counts += confusion(torch.from_numpy(truth), torch.from_numpy(scene.labels), len(model.classes))
        confidences.append(float(scene.confidence.mean()))
        if told is not None:
            told("comparing", done, len(places))
    return Measured(Scores.of(counts), counts, confidences)


def overlap_of(model: ScenePredictor, scores: Scores, heading: str, *, oracle: bool) -> Overlap:
    """The scores for a page."""
    return Overlap(heading, model.classes, to_hex(model.colours), scores.iou, scores.miou, oracle)


def cards_of(model: ScenePredictor, samples: SceneSamples, confidences: Sequence[float]) -> list[MapCard]:
    """A few images with their maps, from the least certain to the most certain; with labels where there are some."""
    order = np.argsort(np.asarray(confidences), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int))]
    found = []
    for place, one in zip(chosen.tolist(), model.scenes(samples, places=chosen.tolist()), strict=True):
        truth = samples.read_labels([place])[0] if samples.labelled else None
        uncertain = (one.entropy, float(one.confidence.mean()))
        found.append(make_map_card(one.name, one.image, one.labels, uncertain, model.colours, truth))
    return found


def pictures_of_scenes(model: ScenePredictor, inputs: SceneInputs, confidences: Sequence[float]) -> Pictures:
    """All pictures that need no label of the target: some scenes, and the overlap on the held-out source."""
    held_out = inputs.pair.source_held_out[:_HELD_OUT].tolist()
    overlaps = []
    if held_out:
        found = measured(inputs.for_source(model), inputs.pair.source.samples, held_out)
        overlaps = [overlap_of(model, found.scores, "held-out source", oracle=False)]
    return Pictures(map_cards=cards_of(model, inputs.pair.target.samples, confidences), overlaps=overlaps)


def pictures_of_run(directory: RunDirectory, model: ScenePredictor, facts: RunFacts) -> Pictures:
    """The pictures of a finished run, from its data; none where they were in memory, or are not what they were."""
    settings, given = directory.read_config()
    if "source" not in given or not all(Path(path).is_absolute() for path in given.values()):
        return NO_PICTURES
    try:
        inputs = open_scene_inputs(settings, given["source"], given.get("target"), lambda _: None)
    except (DataError, OSError):
        return NO_PICTURES
    target = inputs.pair.target.samples
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    return pictures_of_scenes(model, inputs, [confidence for _, _, confidence in facts.predictions])


def write_scene_results(directory: RunDirectory, run: SceneRun, inputs: SceneInputs, told: Told | None = None) -> None:
    """Predictions, results, page and card first, the model last: where it is, all is there."""
    samples = inputs.pair.target.samples
    written = write_maps(
        run.model.scenes(samples, workers=run.settings.workers),
        run.model,
        directory.maps,
        overlays=False,
        count=len(samples),
        told=told,
    )
    write_text(directory.predictions, written.table())
    write_text(directory.table, metrics_table(run.history))
    write_json(directory.results, run.summary())
    facts = read_facts(directory)
    pictures = pictures_of_scenes(run.model, inputs, [row[2] for row in written.rows])
    write_text(directory.report, render_run_page(replace(facts, pictures=pictures)))
    write_card(directory, facts, run.model)
    run.model.save(directory.model, directory.description)
    directory.tidy()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SceneRun(RunResult):
    """What `paretoda.adapt` returns for segmentation; its arguments are those of `RunResult` and three predictors.

    Args:
        model: the chosen model, ready to predict on the target.
        source_model: the same network for images of the source, whose size may differ.
        last: the model after the last step.
    """

    model: ScenePredictor
    source_model: ScenePredictor
    last: ScenePredictor

    def predict(self, inputs: Any, *, refined: bool = False) -> list[NDArray[np.uint8]]:
        """The label map of each image (a path or an array), at its own size."""
        samples = open_scenes(inputs, labelled=False)
        return [scene.labels for scene in self.model.scenes(samples, refined=refined)]
