"""Scenes: images, and where they were opened with labels, a map of classes for each."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from paretoda.data.samples import Image8, Index
from paretoda.data.segmentation.label_table import Colour, LabelTable

Map8 = NDArray[np.uint8]
"""Classes of an image's pixels, shape (h, w), 255 where there is none."""
Size = tuple[int, int]
"""Width and height."""


class SceneSamples(Protocol):
    """A domain of images; `table` is None where nothing tells the classes."""

    @property
    def table(self) -> LabelTable | None:
        """Names and colours of the classes, and the ids in the files."""
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
        """False where the samples were opened without labels: these were then not even read."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: Index) -> list[Image8]:
        """These images, each of shape (h, w, 3)."""
        ...

    def read_labels(self, index: Index) -> list[Map8]:
        """The classes of their pixels, each of shape (h, w) like its image."""
        ...

    def names(self, index: Index) -> list[str]:
        """What a table calls these images."""
        ...

    def sizes(self, index: Index) -> list[Size]:
        """Width and height of these images, without decoding them."""
        ...

    def digests(self, index: Index) -> list[str]:
        """A hash of each image's content."""
        ...

    def without_labels(self) -> SceneSamples:
        """The same images, as if they had been opened without labels."""
        ...
