"""Scenes in memory: NumPy arrays and .npz files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.data.arrays import array_samples, as_array, from_npz
from paretoda.data.errors import DataError
from paretoda.data.labels import class_names
from paretoda.data.npz import reading_npz
from paretoda.data.samples import Image8, Index, content_hash
from paretoda.data.segmentation.label_table import Colour, LabelTable
from paretoda.data.segmentation.samples import Map8, Size
from paretoda.data.segmentation.tables import plain_table
from paretoda.domains import IGNORE


@dataclass(frozen=True, eq=False)
class ArrayScenes:
    """Scenes in memory.

    Args:
        x: images, shape (n, h, w, 3).
        y: classes, shape (n, h, w), already 0..K-1 or 255; None where they were opened without labels.
        table: names and colours of the classes.
        notes: what the user should know.
    """

    x: NDArray[np.uint8]
    y: NDArray[np.uint8] | None = None
    table: LabelTable | None = None
    notes: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the table, none without one."""
        return self.table.names if self.table else ()

    @property
    def colours(self) -> tuple[Colour, ...]:
        """Colours of the table."""
        return self.table.colours if self.table else ()

    @property
    def labelled(self) -> bool:
        """Whether there are label maps."""
        return self.y is not None

    def __len__(self) -> int:
        return len(self.x)

    def read(self, index: Index) -> list[Image8]:
        """These rows."""
        return [self.x[place] for place in index]

    def read_labels(self, index: Index) -> list[Map8]:
        """These rows of the label maps."""
        if self.y is None:
            raise DataError("these scenes were opened without labels")
        return [self.y[place] for place in index]

    def names(self, index: Index) -> list[str]:
        """Row numbers from 0."""
        return [str(int(place)) for place in index]

    def sizes(self, index: Index) -> list[Size]:
        """All rows have the same."""
        return [(self.x.shape[2], self.x.shape[1])] * len(index)

    def digests(self, index: Index) -> list[str]:
        """Hashes of the rows' shape and bytes."""
        shape = str(self.x.shape[1:]).encode()
        return [content_hash(shape + self.x[place].tobytes()) for place in index]

    def without_labels(self) -> ArrayScenes:
        """The images alone."""
        return replace(self, y=None)


def array_scenes(
    x: Any, y: Any = None, classes: Any = None, *, table: LabelTable | None = None, origin: str = "the data"
) -> ArrayScenes:
    """Scenes from arrays of any library; labels only where `y` is given.

    Args:
        x: images, shape (n, h, w, 3) or (n, h, w).
        y: ids, shape (n, h, w).
        classes: names of the classes 0..K-1; without them and without a table every id up to the largest is a class.
        table: what the ids mean.
        origin: what an error calls the data.
    """
    images = _with_colours(array_samples(x, origin=origin).x, origin)
    if y is None:
        return ArrayScenes(images, table=table)
    ids = _ids(as_array(y, origin), images, origin)
    if table is None:
        names = class_names(np.asarray(classes), origin) if classes is not None else numbered(largest(ids) + 1)
        table = plain_table(names)
    return ArrayScenes(images, table.classes_of(ids, origin), table)


def open_npz_scenes(path: Path, *, labelled: bool, table: LabelTable | None) -> ArrayScenes:
    """The file's `x`; its `y` and `classes` are touched only where labels are wanted."""
    with reading_npz(path) as file:
        x, y, classes = from_npz(file, path, labelled=False).x, None, None
        if labelled and "y" not in file.files:
            raise DataError(f"{path} has no labels; save label maps (n, h, w) as `y`")
        if labelled:
            y, classes = file["y"], file["classes"] if "classes" in file.files else None
    return array_scenes(x, y, classes, table=table, origin=str(path))


def numbered(count: int) -> tuple[str, ...]:
    """Names for classes that have none."""
    return tuple(f"class {cls}" for cls in range(max(1, count)))


def largest(ids: NDArray[np.uint8]) -> int:
    """The largest id that is a class, -1 where there is none."""
    counts = np.bincount(ids.ravel(), minlength=IGNORE + 1)[:IGNORE]
    return int(np.flatnonzero(counts)[-1]) if counts.any() else -1


def _with_colours(x: NDArray[Any], origin: str) -> NDArray[np.uint8]:
    if x.ndim == 2:
        raise DataError(f"{origin} has features of shape {x.shape}; segmentation needs images (n, h, w, 3)")
    return np.repeat(x[..., None], 3, axis=3) if x.ndim == 3 else x


def _ids(y: NDArray[Any], images: NDArray[np.uint8], origin: str) -> NDArray[np.uint8]:
    if y.dtype.kind not in "iu":
        raise DataError(f"the labels of {origin} are {y.dtype} instead of integers; number the classes from 0")
    if y.shape != images.shape[:3]:
        raise DataError(
            f"the labels of {origin} have the shape {y.shape} and the images {images.shape}; "
            "give label maps (n, h, w) for images (n, h, w, 3)"
        )
    if not 0 <= y.min() <= y.max() <= IGNORE:
        wrong = y.min() if y.min() < 0 else y.max()
        raise DataError(
            f"{origin} has the label {wrong}; labels are ids in 0..255, with 255 for pixels without a label"
        )
    return np.ascontiguousarray(y, dtype=np.uint8)
