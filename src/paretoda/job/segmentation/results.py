"""What a segmentation run leaves behind, and the run itself: label maps as PNG files, a table, a page, the model."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data.errors import DataError
from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.evaluation.segmentation import Scores, confusion
from paretoda.job.card import write_card
from paretoda.job.directory import RunDirectory, RunError
from paretoda.job.metrics import metrics_table
from paretoda.job.result import RunResult, read_facts
from paretoda.job.run_files import predictions_table
from paretoda.job.segmentation.inputs import SceneInputs, open_scene_inputs
from paretoda.job.segmentation.predictor import Scene, ScenePredictor
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.page import run_page
from paretoda.report.scenes import Overlap, SceneCard, hexadecimal, overlaid, png_of, scene_card
from paretoda.training.files import whole_file, write_json, write_text

OVERLAY = "-overlay"
SHOWN = 8
"""Images on a page."""
Told = Callable[[str, int, int], None]
PREDICTING = "predicting"
_HELD_OUT = 200
"""Source images that the page's table counts, at most."""


@dataclass
class Written:
    """The table of what was predicted, one row an image: name, largest class, mean confidence."""

    rows: list[tuple[str, str, float]]

    def table(self) -> str:
        """The rows as CSV."""
        return predictions_table(self.rows)


def write_maps(
    scenes: Iterable[Scene], model: ScenePredictor, folder: Path, *, overlays: bool, count: int, told: Told | None
) -> Written:
    """One PNG an image, its pixels the class numbers; with overlays, a second one for looking at.

    Args:
        scenes: predictions, each written before the next is asked for.
        model: names and colours.
        folder: for the files; names of images become names in it and never leave it.
        overlays: also write NAME-overlay.png.
        count: of the images, for the progress.
        told: progress.
    """
    rows, name = [], FileNames()
    for place, scene in enumerate(scenes, start=1):
        path = folder / name(scene.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise RunError(f"{path.parent} is a link that leads out of {folder}; remove it or give another folder")
        with whole_file(path.with_name(f"{path.name}.png")) as file:
            file.write(png_of(scene.labels, model.colours))
        if overlays:
            _write_overlay(path.with_name(f"{path.name}{OVERLAY}.png"), scene, model)
        rows.append((scene.name, largest_class(scene.labels, model.classes), float(scene.confidence.mean())))
        if told is not None:
            told(PREDICTING, place, count)
    return Written(rows)


def _write_overlay(path: Path, scene: Scene, model: ScenePredictor) -> None:
    from PIL import Image  # noqa: PLC0415

    data = io.BytesIO()
    Image.fromarray(overlaid(scene.image, scene.labels, model.colours)).save(data, "PNG")
    with whole_file(path) as file:
        file.write(data.getvalue())


def largest_class(labels: NDArray[np.uint8], classes: Sequence[str]) -> str:
    """The class with the most pixels."""
    return classes[int(np.bincount(labels.flatten(), minlength=len(classes)).argmax())]


class FileNames:
    """Names of files for names of images: relative, without `..`, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, name: str) -> str:
        """The file's name, without a suffix."""
        parts = [part for part in name.replace("\\", "/").split("/") if part.strip(".")]
        plain = "/".join([*parts[:-1], parts[-1].rpartition(".")[0] or parts[-1]]) if parts else "image"
        fresh, number = plain, 2
        while self._taken & {fresh, f"{fresh}{OVERLAY}"}:
            fresh, number = f"{plain}-{number}", number + 1
        self._taken |= {fresh, f"{fresh}{OVERLAY}"}
        return fresh


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
    return Overlap(heading, model.classes, hexadecimal(model.colours), scores.iou, scores.miou, oracle)


def cards_of(model: ScenePredictor, samples: SceneSamples, confidences: Sequence[float]) -> list[SceneCard]:
    """A few images with their maps, from the least certain to the most certain; with labels where there are some."""
    order = np.argsort(np.asarray(confidences), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int))]
    found = []
    for place, one in zip(chosen.tolist(), model.scenes(samples, places=chosen.tolist()), strict=True):
        truth = samples.read_labels([place])[0] if samples.labelled else None
        uncertain = (one.entropy, float(one.confidence.mean()))
        found.append(scene_card(one.name, one.image, one.labels, uncertain, model.colours, truth))
    return found


def pictures_of_scenes(model: ScenePredictor, inputs: SceneInputs, confidences: Sequence[float]) -> Pictures:
    """All pictures that need no label of the target: some scenes, and the overlap on the held-out source."""
    held_out = inputs.pair.source_held_out[:_HELD_OUT].tolist()
    overlaps = []
    if held_out:
        found = measured(inputs.for_source(model), inputs.pair.source.samples, held_out)
        overlaps = [overlap_of(model, found.scores, "held-out source", oracle=False)]
    return Pictures(scenes=cards_of(model, inputs.pair.target.samples, confidences), overlaps=overlaps)


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
    write_text(directory.report, run_page(replace(facts, pictures=pictures)))
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
