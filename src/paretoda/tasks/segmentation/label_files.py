"""Predictions as files: a PNG of class numbers for every image, and one to look at."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paretoda.errors import RunError
from paretoda.io.files import atomic_file
from paretoda.report.label_maps import encode_png, overlay_map
from paretoda.run.directory.tables import predictions_table
from paretoda.tasks.segmentation.predictor import Scene, ScenePredictor

OVERLAY = "-overlay"
PREDICTING = "predicting"
Told = Callable[[str, int, int], None]


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
        with atomic_file(path.with_name(f"{path.name}.png")) as file:
            file.write(encode_png(scene.labels, model.colours))
        if overlays:
            _write_overlay(path.with_name(f"{path.name}{OVERLAY}.png"), scene, model)
        rows.append((scene.name, largest_class(scene.labels, model.classes), float(scene.confidence.mean())))
        if told is not None:
            told(PREDICTING, place, count)
    return Written(rows)


def _write_overlay(path: Path, scene: Scene, model: ScenePredictor) -> None:
    from PIL import Image  # noqa: PLC0415

    data = io.BytesIO()
    Image.fromarray(overlay_map(scene.image, scene.labels, model.colours)).save(data, "PNG")
    with atomic_file(path) as file:
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
