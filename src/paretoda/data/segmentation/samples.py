"""Scenes: images, each with or without a label map, in memory or in files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from paretoda.data.open.arrays import make_array_samples, open_npz_file, samples_from_npz, to_array
from paretoda.data.open.decoding import decode, read_shape
from paretoda.data.open.files import FileList
from paretoda.data.samples import Image8, Index, SampleSet, array_digests, class_names, number_positions
from paretoda.data.segmentation.label_tables import Colour, LabelTable, make_plain_table, read_ids
from paretoda.errors import DataError
from paretoda.types import IGNORE

Map8 = NDArray[np.uint8]
"""Classes of an image's pixels, shape (h, w), 255 where there is none."""
Size = tuple[int, int]
"""Width and height."""


class SceneSamples(SampleSet, Protocol):
    """The images of one domain for segmentation."""

    @property
    def table(self) -> LabelTable | None:
        """Names and colours of the classes, and the ids in the files; None where nothing tells the classes."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, none where nothing tells them."""
        ...

    @property
    def colours(self) -> tuple[Colour, ...]:
        """Colours of the classes."""
        ...

    @property
    def labelled(self) -> bool:
        """Whether there are label maps; without, the samples were opened without labels, which were not even read."""
        ...

    def read(self, index: Index) -> list[Image8]:
        """Return these images, each of shape (h, w, 3)."""
        ...

    def read_labels(self, index: Index) -> list[Map8]:
        """Return the classes of their pixels, each of shape (h, w) like its image."""
        ...

    def sizes(self, index: Index) -> list[Size]:
        """Return width and height of these images, without decoding them."""
        ...

    def without_labels(self) -> SceneSamples:
        """Return the same images, as if they had been opened without labels."""
        ...


class TableClasses:
    """The classes of samples that have a label table, or none."""

    table: LabelTable | None

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, none without a table."""
        return self.table.names if self.table else ()

    @property
    def colours(self) -> tuple[Colour, ...]:
        """Colours of the classes, none without a table."""
        return self.table.colours if self.table else ()


@dataclass(frozen=True, eq=False)
class FileScenes(TableClasses):
    """Image files and, in the same order, label files.

    Args:
        paths: The image files; their names stand in tables.
        label_paths: The label files; None where the scenes were opened without labels.
        table: Table of the label files.
        slack: Largest difference in pixels between a label map and its image; the map is then resized.
        notes: Sentences for the user.
    """

    paths: FileList
    label_paths: FileList | None = None
    table: LabelTable | None = None
    slack: int = 0
    notes: tuple[str, ...] = ()

    @property
    def labelled(self) -> bool:
        """Whether there are label files."""
        return self.label_paths is not None

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: Index) -> list[Image8]:
        """Decode these files."""
        return [to_rgb(decode(self.paths[place])) for place in index]

    def read_labels(self, index: Index) -> list[Map8]:
        """Decode their label files."""
        if self.label_paths is None or self.table is None:
            raise DataError("these scenes were opened without labels")
        maps = []
        for place, (width, height) in zip(index, self.sizes(index), strict=True):
            path = self.label_paths[place]
            ids = self.table.classes_of(read_ids(path), str(path))
            check_sizes((width, height), (ids.shape[1], ids.shape[0]), self.paths[place], path, self.slack)
            maps.append(resize_map(ids, (width, height)))
        return maps

    def names(self, index: Index) -> list[str]:
        """Return paths below the folder, or as written in the list."""
        return self.paths.printable_names(index)

    def sizes(self, index: Index) -> list[Size]:
        """Return the sizes from the files' headers."""
        shapes = [read_shape(self.paths[place]) for place in index]
        return [(width, height) for height, width, _ in shapes]

    def digests(self, index: Index) -> list[str]:
        """Return hashes of the files' bytes."""
        return self.paths.digests(index)

    def without_labels(self) -> FileScenes:
        """Return the image files without labels."""
        return replace(self, label_paths=None)

    def select(self, index: Index) -> FileScenes:
        """Return the scenes at these positions."""
        labels = self.label_paths and self.label_paths.select(index)
        return replace(self, paths=self.paths.select(index), label_paths=labels)

    def with_notes(self, notes: tuple[str, ...]) -> FileScenes:
        """Return the same scenes with other notes."""
        return replace(self, notes=notes)


def check_sizes(image: Size, label: Size, path: Path, label_path: Path, slack: int) -> None:
    """Raise a `DataError` where the sizes of image and label differ by more than `slack` pixels."""
    if max(abs(image[0] - label[0]), abs(image[1] - label[1])) > slack:
        raise DataError(
            f"{path} is {image[0]}x{image[1]} and its label {label_path} is {label[0]}x{label[1]}; "
            "bring the label to its image's size without mixing ids, or remove both"
        )


def resize_map(ids: Map8, size: Size) -> Map8:
    """Resize a label map; every pixel takes the nearest label, none is mixed."""
    if (ids.shape[1], ids.shape[0]) == size:
        return ids
    return np.asarray(Image.fromarray(ids).resize(size, Image.Resampling.NEAREST))


def to_rgb(image: Image8) -> Image8:
    """Return a grey image as RGB, shape (h, w, 3)."""
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image


@dataclass(frozen=True, eq=False)
class ArrayScenes(TableClasses):
    """Scenes in memory.

    Args:
        x: Images, shape (n, h, w, 3).
        y: Classes 0..K-1 or 255, shape (n, h, w); None where the scenes were opened without labels.
        table: Names and colours of the classes.
        notes: Sentences for the user.
    """

    x: NDArray[np.uint8]
    y: NDArray[np.uint8] | None = None
    table: LabelTable | None = None
    notes: tuple[str, ...] = ()

    @property
    def labelled(self) -> bool:
        """Whether there are label maps."""
        return self.y is not None

    def __len__(self) -> int:
        return len(self.x)

    def read(self, index: Index) -> list[Image8]:
        """Return these rows."""
        return [self.x[place] for place in index]

    def read_labels(self, index: Index) -> list[Map8]:
        """Return these rows of the label maps."""
        if self.y is None:
            raise DataError("these scenes were opened without labels")
        return [self.y[place] for place in index]

    def names(self, index: Index) -> list[str]:
        """Return row numbers from 0."""
        return number_positions(index)

    def sizes(self, index: Index) -> list[Size]:
        """Return the one size of all rows, for each of these."""
        return [(self.x.shape[2], self.x.shape[1])] * len(index)

    def digests(self, index: Index) -> list[str]:
        """Return hashes of the rows' shape and bytes."""
        return array_digests(self.x, index)

    def without_labels(self) -> ArrayScenes:
        """Return the images without labels."""
        return replace(self, y=None)


@dataclass(frozen=True, eq=False)
class PredictedScenes(TableClasses):
    """Images with label maps that a network has predicted for them, in the place of labelled ones.

    Args:
        scenes: The images.
        maps: Predicted classes, uint8, shape (n, h, w), at the resolution of the network's maps.
        table: Names and colours of the classes.
    """

    scenes: SceneSamples
    maps: NDArray[np.uint8]
    table: LabelTable

    labelled = True
    notes: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return len(self.scenes)

    def read(self, index: Index) -> list[Image8]:
        """Return these images."""
        return self.scenes.read(index)

    def read_labels(self, index: Index) -> list[Map8]:
        """Return their predicted maps, resized to the images; every pixel takes the nearest prediction."""
        sizes = self.sizes(index)
        return [resize_map(self.maps[place], size) for place, size in zip(index, sizes, strict=True)]

    def names(self, index: Index) -> list[str]:
        """Return the names of these images."""
        return self.scenes.names(index)

    def sizes(self, index: Index) -> list[Size]:
        """Return width and height of these images."""
        return self.scenes.sizes(index)

    def digests(self, index: Index) -> list[str]:
        """Return hashes of these images."""
        return self.scenes.digests(index)

    def without_labels(self) -> SceneSamples:
        """Return the images alone."""
        return self.scenes


def make_array_scenes(
    x: Any, y: Any = None, classes: Any = None, *, table: LabelTable | None = None, origin: str = "the data"
) -> ArrayScenes:
    """Make scenes of arrays of any library.

    Args:
        x: Images, shape (n, h, w, 3) or (n, h, w).
        y: Ids, shape (n, h, w); None for scenes without labels.
        classes: Names of the classes 0..K-1; without them and without a table every id up to the largest is a class.
        table: Meaning of the ids.
        origin: Name of the data in error messages.

    Raises:
        DataError: The arrays are no images with label maps of their size.
    """
    images = _to_colour_images(make_array_samples(x, origin=origin).x, origin)
    if y is None:
        return ArrayScenes(images, table=table)
    ids = _check_ids(to_array(y, origin), images, origin)
    if table is None:
        names = class_names(np.asarray(classes), origin) if classes is not None else number_names(largest_id(ids) + 1)
        table = make_plain_table(names)
    return ArrayScenes(images, table.classes_of(ids, origin), table)


def open_npz_scenes(path: Path, *, labelled: bool, table: LabelTable | None) -> ArrayScenes:
    """Open the `x` of a file; its `y` and `classes` are read only where labels are wanted."""
    with open_npz_file(path) as file:
        x, y, classes = samples_from_npz(file, path, labelled=False).x, None, None
        if labelled and "y" not in file.files:
            raise DataError(f"{path} has no labels; save label maps (n, h, w) as `y`")
        if labelled:
            y, classes = file["y"], file["classes"] if "classes" in file.files else None
    return make_array_scenes(x, y, classes, table=table, origin=str(path))


def number_names(count: int) -> tuple[str, ...]:
    """Return names for classes that have none."""
    return tuple(f"class {cls}" for cls in range(max(1, count)))


def largest_id(ids: NDArray[np.uint8]) -> int:
    """Return the largest id that is a class, -1 where there is none."""
    counts = np.bincount(ids.ravel(), minlength=IGNORE + 1)[:IGNORE]
    return int(np.flatnonzero(counts)[-1]) if counts.any() else -1


def _to_colour_images(x: NDArray[Any], origin: str) -> NDArray[np.uint8]:
    if x.ndim == 2:
        raise DataError(f"{origin} has features of shape {x.shape}; segmentation needs images (n, h, w, 3)")
    return np.repeat(x[..., None], 3, axis=3) if x.ndim == 3 else x


def _check_ids(y: NDArray[Any], images: NDArray[np.uint8], origin: str) -> NDArray[np.uint8]:
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
