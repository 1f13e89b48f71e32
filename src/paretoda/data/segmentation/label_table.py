"""A label table: from the ids in a data set's files to classes 0..K-1, their names and colours."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paretoda.data.errors import DataError
from paretoda.domains import IGNORE

Colour = tuple[int, int, int]
"""Red, green, blue in 0..255."""


@dataclass(frozen=True)
class LabelTable:
    """What the ids in label files mean.

    Args:
        names: of the classes.
        colours: of the classes, as many.
        ids: pairs (id in the files, class); several ids may share a class.
        void: ids that are known and stand for no class; 255 always is one.
    """

    names: tuple[str, ...]
    colours: tuple[Colour, ...]
    ids: tuple[tuple[int, int], ...]
    void: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.names) != len(self.colours) or not 0 < len(self.names) <= IGNORE:
            raise DataError(f"a label table needs 1 to {IGNORE} names and as many colours")
        if any(not (0 <= value < IGNORE and 0 <= cls < len(self.names)) for value, cls in self.ids):
            raise DataError(f"a label table needs ids in 0..{IGNORE - 1} and classes in 0..{len(self.names) - 1}")

    @cached_property
    def lookup(self) -> NDArray[np.uint8]:
        """The class of every id, `IGNORE` where there is none, shape (256,)."""
        table = np.full(256, IGNORE, dtype=np.uint8)
        for value, cls in self.ids:
            table[value] = cls
        return table

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which ids may occur in a file, shape (256,)."""
        known: NDArray[np.bool_] = self.lookup != IGNORE
        known[[IGNORE, *self.void]] = True
        return known

    @property
    def occurring(self) -> tuple[int, ...]:
        """The classes that some id has: SYNTHIA knows 16 of Cityscapes' 19."""
        return tuple(sorted({cls for _, cls in self.ids}))

    def classes_of(self, ids: NDArray[np.uint8], origin: str) -> NDArray[np.uint8]:
        """The map of classes of a map of ids; an id that the table does not know is an error.

        Args:
            ids: any shape.
            origin: what an error calls the map.
        """
        present = np.bincount(ids.ravel(), minlength=256) > 0
        strange = np.flatnonzero(present & ~self.known)
        if len(strange):
            raise DataError(
                f"{origin} has the label {strange[0]}, which is none of the {len(self.names)} classes; "
                "correct it, or set such pixels to 255"
            )
        return self.lookup[ids]


def palette(count: int) -> tuple[Colour, ...]:
    """Colours that are all different and none of them black, the same for the same count's beginning."""
    colours = []
    for place in range(count):
        # The golden ratio spreads the hues evenly, however many there are; brightness tells neighbours of one hue.
        hue = place * 0.6180339887498949 % 1
        red, green, blue = colorsys.hsv_to_rgb(hue, 0.85 - 0.3 * (place % 3 == 2), 0.95 - 0.12 * (place % 4))
        colours.append((round(255 * red), round(255 * green), round(255 * blue)))
    return tuple(colours)
