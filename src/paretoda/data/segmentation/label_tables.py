"""Label files and label tables: from ids in a data set's files to classes 0..K-1, their names and colours."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from paretoda.data.open.decoding import open_image, unreadable_error
from paretoda.errors import DataError
from paretoda.types import IGNORE

_PNG = b"\x89PNG\r\n\x1a\n"
_LOW_BYTES = {"RGB": "RGB;16L", "RGBA": "RGBA;16L"}
Colour = tuple[int, int, int]
"""Red, green and blue in 0..255."""
_ALIASES = {"sign": "sign_symbol"}
_NINETEEN: tuple[tuple[str, int, Colour], ...] = (
    ("road", 7, (128, 64, 128)),
    ("sidewalk", 8, (244, 35, 232)),
    ("building", 11, (70, 70, 70)),
    ("wall", 12, (102, 102, 156)),
    ("fence", 13, (190, 153, 153)),
    ("pole", 17, (153, 153, 153)),
    ("traffic light", 19, (250, 170, 30)),
    ("traffic sign", 20, (220, 220, 0)),
    ("vegetation", 21, (107, 142, 35)),
    ("terrain", 22, (152, 251, 152)),
    ("sky", 23, (70, 130, 180)),
    ("person", 24, (220, 20, 60)),
    ("rider", 25, (255, 0, 0)),
    ("car", 26, (0, 0, 142)),
    ("truck", 27, (0, 0, 70)),
    ("bus", 28, (0, 60, 100)),
    ("train", 31, (0, 80, 100)),
    ("motorcycle", 32, (0, 0, 230)),
    ("bicycle", 33, (119, 11, 32)),
)
_NAMES = tuple(name for name, _, _ in _NINETEEN)
_COLOURS = tuple(colour for _, _, colour in _NINETEEN)
_SYNTHIA = (3, 4, 2, 21, 5, 7, 15, 9, 6, None, 1, 10, 17, 8, None, 19, None, 12, 11)
_ELEVEN: tuple[tuple[str, Colour], ...] = (
    ("sky", (128, 128, 128)),
    ("building", (128, 0, 0)),
    ("pole", (192, 192, 128)),
    ("road", (128, 64, 128)),
    ("pavement", (60, 40, 222)),
    ("tree", (128, 128, 0)),
    ("sign_symbol", (192, 128, 128)),
    ("fence", (64, 64, 128)),
    ("car", (64, 0, 128)),
    ("pedestrian", (64, 64, 0)),
    ("bicyclist", (0, 128, 192)),
)
TABLE_DESCRIPTIONS = {
    "cityscapes": "labelIds of Cityscapes, 0 to 34, as its 19 classes.",
    "cityscapes-train-ids": "trainIds of Cityscapes, 0 to 18.",
    "gta5": "As cityscapes, whose numbers GTA5's label files have.",
    "synthia": "Numbers of SYNTHIA-RAND-CITYSCAPES as Cityscapes' 19 classes, of which it has 16.",
    "camvid": "SegNet's copy of CamVid, 11 classes.",
    "camvid-as-cityscapes": "CamVid's numbers as Cityscapes' 19 classes, of which it has 11.",
    "cityscapes-as-camvid": "labelIds of Cityscapes and GTA5 as CamVid's 11 classes.",
}
"""What each table reads, and as what."""


def read_ids(path: Path) -> NDArray[np.uint8]:
    """Return the ids of a label file, shape (h, w); a palette's colours are ignored.

    Raises:
        DataError: The file cannot be read, or has ids above 255.
    """
    try:
        with open_image(path) as image:
            values = _values(image, path)
    except DataError:
        raise
    except Exception as error:  # a broken file makes decoders raise any kind of error
        raise _read_error(path, error) from error
    if values.size and not 0 <= int(values.min()) <= int(values.max()) <= IGNORE:
        wrong = values.min() if values.min() < 0 else values.max()
        raise DataError(f"{path} has the label {wrong}; labels are ids in 0..255, with 255 for pixels without a label")
    return values.astype(np.uint8)


def read_size(path: Path) -> tuple[int, int]:
    """Return width and height from the file's header."""
    try:
        with open_image(path) as image:
            return image.size
    except Exception as error:  # as above
        raise _read_error(path, error) from error


def read_palette(path: Path) -> list[tuple[int, ...]] | None:
    """Return the colours of the ids, or None where the file has no palette."""
    try:
        with open_image(path) as image:
            entries = image.getpalette() if image.mode == "P" else None
    except Exception as error:  # as above
        raise _read_error(path, error) from error
    return None if entries is None else [tuple(entries[k : k + 3]) for k in range(0, len(entries), 3)]


def _values(image: Image.Image, path: Path) -> NDArray[Any]:
    if image.mode in ("L", "P", "1") or image.mode.startswith("I"):
        values = np.asarray(image)
        return values.astype(np.uint8) if values.dtype == np.bool_ else values
    if image.mode in _LOW_BYTES and _bits(path) == 16:
        return _first_channel(path)
    raise DataError(
        f"{path} is a coloured image ({image.mode}) where a label map is wanted; "
        "give PNGs of one 8-bit channel, or with a palette, whose values are ids"
    )


def _first_channel(path: Path) -> NDArray[np.uint16]:
    # Pillow keeps only the high bytes of 16-bit colours, which are all 0 in SYNTHIA. Read as little-endian, the bytes
    # that it takes for the high ones are the low ones: the ids.
    content = path.read_bytes()
    high, low = Image.open(io.BytesIO(content)), Image.open(io.BytesIO(content))
    with high, low:
        low.tile = [_change_tile_format(tile, _LOW_BYTES[low.mode]) for tile in low.tile]
        first = np.asarray(high)[..., 0].astype(np.uint16)
        return np.asarray((first << 8) | np.asarray(low)[..., 0])


def _change_tile_format(tile: Any, raw: str) -> Any:
    return tile._replace(args=raw) if hasattr(tile, "_replace") else (*tile[:3], raw)


def _bits(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(25)
    return head[24] if head.startswith(_PNG) else 8


def _read_error(path: Path, error: Exception) -> DataError:
    return unreadable_error(
        path,
        error,
        missing="add this label file, or remove its image",
        broken="repair or delete it with its image, or leave such pairs out with --skip-bad",
    )


@dataclass(frozen=True)
class LabelTable:
    """The meaning of the ids in label files.

    Args:
        names: Names of the classes.
        colours: Colours of the classes.
        ids: Pairs (id in the files, class); several ids may share a class.
        void: Ids that are known and stand for no class; 255 always is one.

    Raises:
        DataError: The numbers of names, colours, ids or classes do not fit.
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

    def classes_of(self, ids: NDArray[np.uint8], origin: str) -> NDArray[np.uint8]:
        """Return the map of classes of a map of ids.

        Args:
            ids: Ids, any shape.
            origin: Name of the map in error messages.

        Raises:
            DataError: An id is not in the table.
        """
        present = np.bincount(ids.ravel(), minlength=256) > 0
        strange = np.flatnonzero(present & ~self.known)
        if len(strange):
            raise DataError(
                f"{origin} has the label {strange[0]}, which is none of the {len(self.names)} classes; "
                "correct it, or set such pixels to 255"
            )
        return self.lookup[ids]


def make_palette(count: int) -> tuple[Colour, ...]:
    """Return `count` different colours without black; a larger count begins with the same colours."""
    colours = []
    for place in range(count):
        # The golden ratio spreads the hues evenly, however many there are; brightness separates similar hues.
        hue = place * 0.6180339887498949 % 1
        red, green, blue = colorsys.hsv_to_rgb(hue, 0.85 - 0.3 * (place % 3 == 2), 0.95 - 0.12 * (place % 4))
        colours.append((round(255 * red), round(255 * green), round(255 * blue)))
    return tuple(colours)


CITYSCAPES = LabelTable(
    _NAMES,
    _COLOURS,
    tuple((value, cls) for cls, (_, value, _) in enumerate(_NINETEEN)),
    (0, 1, 2, 3, 4, 5, 6, 9, 10, 14, 15, 16, 18, 29, 30, 34),
)
"""The labelIds of Cityscapes and GTA5; 34 is GTA5's licence plate, which Cityscapes writes as -1, that is 255."""

CITYSCAPES_TRAIN_IDS = LabelTable(_NAMES, _COLOURS, tuple((cls, cls) for cls in range(19)))
"""The ids of files *_labelTrainIds.png."""


SYNTHIA = LabelTable(
    _NAMES,
    _COLOURS,
    tuple((value, cls) for cls, value in enumerate(_SYNTHIA) if value is not None),
    (0, 13, 14, 16, 18, 20, 22),
)
"""SYNTHIA-RAND-CITYSCAPES in Cityscapes' classes, without terrain, truck and train, as in all comparisons."""


CAMVID = LabelTable(
    tuple(name for name, _ in _ELEVEN),
    tuple(colour for _, colour in _ELEVEN),
    tuple((cls, cls) for cls in range(11)),
    (11,),
)
"""The ids of SegNet's copy of CamVid."""

CAMVID_AS_CITYSCAPES = LabelTable(
    _NAMES,
    _COLOURS,
    ((0, 10), (1, 2), (2, 5), (3, 0), (4, 1), (5, 8), (6, 7), (7, 4), (8, 13), (9, 11), (10, 12)),
    (11,),
)
"""CamVid's files in Cityscapes' classes; a bicyclist is a rider, though the bicycle is part of it."""

CITYSCAPES_AS_CAMVID = LabelTable(
    CAMVID.names,
    CAMVID.colours,
    (*((_NINETEEN[theirs][1], ours) for ours, theirs in CAMVID_AS_CITYSCAPES.ids), (33, 10)),
    tuple(sorted({*CITYSCAPES.void, 12, 19, 22, 27, 28, 31, 32})),
)
"""Cityscapes and GTA5 in CamVid's classes: rider and bicycle are one, what CamVid lacks is ignored."""

TABLES = {
    "cityscapes": CITYSCAPES,
    "cityscapes-train-ids": CITYSCAPES_TRAIN_IDS,
    "gta5": CITYSCAPES,
    "synthia": SYNTHIA,
    "camvid": CAMVID,
    "camvid-as-cityscapes": CAMVID_AS_CITYSCAPES,
    "cityscapes-as-camvid": CITYSCAPES_AS_CAMVID,
}
"""Label tables by name."""


def find_table(table: LabelTable | str) -> LabelTable:
    """Return the table of this name.

    Raises:
        DataError: There is no such table.
    """
    if isinstance(table, LabelTable):
        return table
    if table not in TABLES:
        raise DataError(f"there is no label table {table!r}; choose from {', '.join(TABLES)}")
    return TABLES[table]


def make_plain_table(names: Sequence[str]) -> LabelTable:
    """Return the table of files that hold classes 0..K-1, with well-known colours where all names are known."""
    return LabelTable(tuple(names), choose_colours(names), tuple((cls, cls) for cls in range(len(names))))


def choose_colours(names: Sequence[str]) -> tuple[Colour, ...]:
    """Return the colours of Cityscapes or CamVid where one of them has all these names, else generated ones."""
    for table in (CITYSCAPES, CAMVID):
        known = dict(zip(table.names, table.colours, strict=True))
        clean = [_ALIASES.get(name, name) for name in names]
        if all(name in known for name in clean):
            return tuple(known[name] for name in clean)
    return make_palette(len(names))
