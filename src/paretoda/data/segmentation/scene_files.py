"""Scenes in files: decoded when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from paretoda.data.decoding import decode, shape_of
from paretoda.data.errors import DataError
from paretoda.data.file_list import FileList
from paretoda.data.files import printable
from paretoda.data.samples import Image8, Index, content_hash
from paretoda.data.segmentation.label_files import read_ids
from paretoda.data.segmentation.label_table import Colour, LabelTable
from paretoda.data.segmentation.samples import Map8, Size


@dataclass(frozen=True, eq=False)
class FileScenes:
    """Image files and, in the same order, label files.

    Args:
        paths: of the images; their names stand in tables.
        label_paths: None where they were opened without labels.
        table: of the label files.
        slack: a label map that is so many pixels larger or smaller than its image is resized to it.
        notes: what the user should know.
    """

    paths: FileList
    label_paths: FileList | None = None
    table: LabelTable | None = None
    slack: int = 0
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
        """Whether there are label files."""
        return self.label_paths is not None

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: Index) -> list[Image8]:
        """Decodes these files."""
        return [coloured(decode(self.paths[place])) for place in index]

    def read_labels(self, index: Index) -> list[Map8]:
        """Decodes their label files."""
        if self.label_paths is None or self.table is None:
            raise DataError("these scenes were opened without labels")
        maps = []
        for place, (width, height) in zip(index, self.sizes(index), strict=True):
            path = self.label_paths[place]
            ids = self.table.classes_of(read_ids(path), str(path))
            check_sizes((width, height), (ids.shape[1], ids.shape[0]), self.paths[place], path, self.slack)
            maps.append(resized_map(ids, (width, height)))
        return maps

    def names(self, index: Index) -> list[str]:
        """Paths below the folder or as written in the list."""
        return [printable(self.paths.name(place)) for place in index]

    def sizes(self, index: Index) -> list[Size]:
        """From the files' headers."""
        shapes = [shape_of(self.paths[place]) for place in index]
        return [(width, height) for height, width, _ in shapes]

    def digests(self, index: Index) -> list[str]:
        """Hashes of the files' bytes."""
        return [content_hash(self.paths[place].read_bytes()) for place in index]

    def without_labels(self) -> FileScenes:
        """The image files alone."""
        return replace(self, label_paths=None)

    def kept(self, keep: Sequence[int], notes: tuple[str, ...]) -> FileScenes:
        """These scenes, with new notes."""
        labels = self.label_paths and self.label_paths.kept(keep)
        return replace(self, paths=self.paths.kept(keep), label_paths=labels, notes=notes)


def check_sizes(image: Size, label: Size, path: Path, label_path: Path, slack: int) -> None:
    """Raises where image and label differ by more than `slack` pixels."""
    if max(abs(image[0] - label[0]), abs(image[1] - label[1])) > slack:
        raise DataError(
            f"{path} is {image[0]}x{image[1]} and its label {label_path} is {label[0]}x{label[1]}; "
            "bring the label to its image's size without mixing ids, or remove both"
        )


def resized_map(ids: Map8, size: Size) -> Map8:
    """The map at this size: every pixel takes the nearest label, none is mixed."""
    if (ids.shape[1], ids.shape[0]) == size:
        return ids
    return np.asarray(Image.fromarray(ids).resize(size, Image.Resampling.NEAREST))


def coloured(image: Image8) -> Image8:
    """Grey as RGB, shape (h, w, 3)."""
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image
