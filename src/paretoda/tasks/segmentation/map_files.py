"""Predicted label maps as files: a PNG of class numbers for every image, and an overlay to look at."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paretoda.errors import RunError
from paretoda.io.files import atomic_file
from paretoda.report.label_maps import encode_png, overlay_map
from paretoda.run.directory.tables import Predicted
from paretoda.tasks.segmentation.predictor import Scene, SegmentationPredictor
from paretoda.types import Progress

OVERLAY = "-overlay"
PREDICTING = "predicting"


def write_maps(
    scenes: Iterable[Scene],
    model: SegmentationPredictor,
    folder: Path,
    *,
    overlays: bool,
    count: int,
    progress: Progress | None,
) -> list[Predicted]:
    """Write one PNG for each image, whose pixels are the class numbers; with overlays, a second one for looking at.

    Args:
        scenes: Predictions; each is written before the next one is made.
        model: Gives names and colours of the classes.
        folder: Folder for the files; names of images become names in it and never leave it.
        overlays: Also write NAME-overlay.png.
        count: Number of the images, for the progress.
        progress: Called after each image.

    Returns:
        One row for each image: its name, its largest class, the mean confidence.

    Raises:
        RunError: A folder in `folder` is a link that leads out of it.
    """
    rows, name = [], FileNames()
    for place, scene in enumerate(scenes, start=1):
        path = folder / name(scene.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise RunError(f"{path.parent} is a link that leads out of {folder}; remove it or give another folder")
        with atomic_file(path.with_name(f"{path.name}.png")) as file:
            file.write(encode_png(scene.labels, model.colours))
        if overlays:
            _write_overlay(path.with_name(f"{path.name}{OVERLAY}.png"), scene, model)
        rows.append((scene.name, largest_class(scene.labels, model.classes), float(scene.confidence.mean())))
        if progress is not None:
            progress(PREDICTING, place, count)
    return rows


def _write_overlay(path: Path, scene: Scene, model: SegmentationPredictor) -> None:
    from PIL import Image  # noqa: PLC0415

    data = io.BytesIO()
    Image.fromarray(overlay_map(scene.image, scene.labels, model.colours)).save(data, "PNG")
    with atomic_file(path) as file:
        file.write(data.getvalue())


def largest_class(labels: NDArray[np.uint8], classes: Sequence[str]) -> str:
    """Return the name of the class with the most pixels."""
    return classes[int(np.bincount(labels.flatten(), minlength=len(classes)).argmax())]


class FileNames:
    """Maps names of images to names of files: relative, without `..`, each one different."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, name: str) -> str:
        """Return the file's name, without a suffix."""
        parts = [part for part in name.replace("\\", "/").split("/") if part.strip(".")]
        plain = "/".join([*parts[:-1], parts[-1].rpartition(".")[0] or parts[-1]]) if parts else "image"
        fresh, number = plain, 2
        while self._taken & {fresh, f"{fresh}{OVERLAY}"}:
            fresh, number = f"{plain}-{number}", number + 1
        self._taken |= {fresh, f"{fresh}{OVERLAY}"}
        return fresh
