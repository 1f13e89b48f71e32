"""The few target images whose label maps the user has given."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretoda.core.options import name_some
from paretoda.data.batching import Positions, split_positions
from paretoda.data.segmentation.label_tables import LabelTable
from paretoda.data.segmentation.opening import open_scenes
from paretoda.data.segmentation.pair import make_scene_rows
from paretoda.data.segmentation.samples import SceneSamples
from paretoda.data.segmentation.transforms import SceneTransform
from paretoda.data.target_labels import LabelledSamples
from paretoda.errors import DataError
from paretoda.types import IGNORE, Progress


def open_labelled_scenes(
    what: Any,
    classes: tuple[str, ...],
    *,
    table: LabelTable | str | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> SceneSamples:
    """Open the labelled images of the target and check that their classes are those of the source, in its order.

    Args:
        what: Labelled scenes in any form that a source may have.
        classes: Classes of the source.
        table: Meaning of the ids in the label files; None: that of their layout.
        skip_bad: Whether scenes that cannot be read are left out.
        progress: Called while files are checked.

    Raises:
        DataError: They have no label maps, or other classes than the source.
    """
    scenes = open_scenes(what, labelled=True, table=table, skip_bad=skip_bad, progress=progress)
    if len(scenes.classes) != len(classes):
        raise DataError(
            f"the labelled target images have {len(scenes.classes)} classes ({name_some(scenes.classes)}), the source "
            f"has {len(classes)} ({name_some(classes)}); label the images with the classes of the source"
        )
    different = [pair for pair in zip(scenes.classes, classes, strict=True) if pair[0] != pair[1]]
    if different and set(scenes.classes) == set(classes):
        raise DataError(
            f"the labelled target images number the classes of the source differently ({name_some(scenes.classes)}); "
            "give them in the order of the source"
        )
    return scenes


def divide_scenes(count: int, seed: int, *, train: bool, hold_out: bool) -> tuple[Positions, Positions]:
    """Return the positions that train and those held out: all for one use, or half for each of both.

    Args:
        count: Number of labelled images.
        seed: Seed of the division.
        train: Whether a loss is trained on labelled images.
        hold_out: Whether labelled images guide or choose the model.

    Raises:
        DataError: A single image cannot do both.

    Examples:
        >>> [len(part) for part in divide_scenes(5, seed=0, train=True, hold_out=True)]
        [3, 2]
    """
    every, none = np.arange(count), np.arange(0)
    if not (train and hold_out):
        return (every if train else none), (every if hold_out else none)
    if count < 2:
        raise DataError("a single labelled target image cannot both train and be held out; label one more")
    return split_positions(count, 0.5, seed, "split-labelled")


def label_scenes(
    scenes: SceneSamples, transform: SceneTransform, train: Positions, held_out: Positions, *, guides: bool
) -> LabelledSamples:
    """Return labelled images of the target, which are the same in every step, as all its images are.

    Args:
        scenes: The images with their label maps.
        transform: The transform of the target.
        train: Positions of the images that a loss is trained on.
        held_out: Positions of the others.
        guides: Whether those that are held out guide the weights.
    """
    rows = make_scene_rows(scenes, transform)

    def read(places: Positions, _: torch.Generator | None) -> tuple[Tensor, Tensor]:
        return rows.evaluate(places), torch.from_numpy(rows.maps(places)).long()

    return LabelledSamples(read, train, held_out, guides)


def find_present_classes(labelled: LabelledSamples) -> set[int]:
    """Return the classes that have a pixel in labelled images; an image at a time is read.

    Raises:
        DataError: No pixel has a label.
    """
    found: set[int] = set()
    for place in (*labelled.train, *labelled.held_out):
        _, maps = labelled.read(np.array([place]), None)
        found |= set(np.unique(maps.numpy()).tolist())
    if not found - {IGNORE}:
        raise DataError("no pixel of the labelled target images has a label; label some pixels with a class")
    return found - {IGNORE}
