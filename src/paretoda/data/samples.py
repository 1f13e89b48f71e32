"""Samples of one domain behind one small protocol, wherever they come from, and their labels 0..K-1."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paretoda.core.options import name_some
from paretoda.errors import DataError

_DIGITS = 18  # a longer number is taken for a name: Python refuses to parse thousands of digits
Kind = Literal["features", "images"]
Index: TypeAlias = "Sequence[int] | NDArray[np.int64]"
Image8: TypeAlias = NDArray[np.uint8]
"""One image, shape (h, w) where it is grey or (h, w, 3)."""
Raw: TypeAlias = "NDArray[Any] | Sequence[Image8]"
"""Features (n, d) float32, or images: one uint8 array (n, h, w[, 3]), or a list of arrays of several sizes."""
INSPECTED = 16
"""Number of samples that are inspected to learn what the images are like."""


@dataclass(frozen=True, eq=False)
class Labels:
    """One class per sample.

    Args:
        values: Positions in `classes`, shape (n,).
        classes: Names of the classes, all different.
    """

    values: NDArray[np.int64]
    classes: tuple[str, ...]

    def select(self, index: NDArray[np.int64]) -> Labels:
        """Return the labels of the samples at these positions, with all class names."""
        return Labels(self.values[index], self.classes)


def labels_from_names(names: Sequence[str]) -> Labels:
    """Make each name a class, in alphabetical order, or in numerical order where all names are integers.

    >>> labels_from_names(["10", "9", "10"]).classes
    ('9', '10')
    """
    clean = {name: unicodedata.normalize("NFC", name) for name in set(names)}
    found = set(clean.values())
    order = sorted(found, key=int) if all(map(_is_integer, found)) else sorted(found)
    place = {text: number for number, text in enumerate(order)}
    position = {name: place[text] for name, text in clean.items()}
    return Labels(np.array([position[name] for name in names], dtype=np.int64), tuple(order))


def labels_from_integers(y: NDArray[Any], names: NDArray[Any] | None, origin: str) -> Labels:
    """Make labels of integers, which are positions in `names`; without names each integer that occurs is a class.

    Args:
        y: Integers, shape (n,).
        names: Class names, or None.
        origin: Name of the data in error messages.

    Raises:
        DataError: The labels are not integers, not one per sample, or not positions in `names`.
    """
    if y.dtype.kind not in "iub":
        raise DataError(f"the labels of {origin} are {y.dtype} instead of integers; number the classes from 0")
    if y.ndim != 1:
        raise DataError(f"the labels of {origin} have the shape {y.shape}; give one integer per sample")
    y = y.astype(np.int64)
    if names is None:
        integers, values = np.unique(y, return_inverse=True)
        return Labels(values.astype(np.int64), tuple(str(integer) for integer in integers))
    classes = class_names(names, origin)
    wrong = y[(y < 0) | (y >= len(classes))]
    if wrong.size:
        raise DataError(
            f"the labels of {origin} go beyond its {len(classes)} classes (for example {wrong[0]}); "
            f"they must be positions 0..{len(classes) - 1} in `classes`"
        )
    return Labels(y, classes)


def class_names(names: NDArray[Any], origin: str) -> tuple[str, ...]:
    """Return the class names as text; raise a `DataError` where they are no list of different names."""
    if names.ndim != 1 or names.dtype.kind not in "USiu":
        raise DataError(f"`classes` of {origin} must be a list of names, not {names.dtype} of shape {names.shape}")
    try:
        texts = [name if isinstance(name, bytes) else str(name).encode(errors="replace") for name in names.tolist()]
    except ValueError as error:
        raise DataError(f"`classes` of {origin} cannot be read ({error}); give names as text") from error
    clean = tuple(unicodedata.normalize("NFC", text.decode(errors="replace")) for text in texts)
    double = sorted(name for name, count in Counter(clean).items() if count > 1)
    if double:
        raise DataError(f"`classes` of {origin} has {double[0]!r} more than once; give every class a name of its own")
    return clean


def match_labels(labels: Labels, classes: Sequence[str], origin: str, others: str | None = None) -> Labels:
    """Return the same labels as positions in the model's classes, matched by name.

    Integers without names are taken as positions where the model's own names are no integers.

    Args:
        labels: Labels of the data.
        classes: Classes of the model.
        origin: Name of the data in error messages.
        others: Name of the class, behind the model's, that all classes get which it does not know; None: an error.

    Raises:
        DataError: The data have classes that the model does not know.
    """
    position = {name: place for place, name in enumerate(classes)}
    place = [position.get(name, -1) for name in labels.classes]
    if -1 in place and all(map(_is_integer, labels.classes)) and not any(map(_is_integer, classes)):
        place = [int(name) for name in labels.classes]
    unknown = [name for name, p in zip(labels.classes, place, strict=True) if not 0 <= p < len(classes)]
    if others is not None:
        place = [p if 0 <= p < len(classes) else len(classes) for p in place]
    elif unknown:
        raise DataError(
            f"{origin} has classes that the model does not know: {name_some(unknown)}; "
            f"it knows {name_some(list(classes))}"
        )
    names = (*classes, *([] if others is None else [others]))
    return Labels(np.array(place, dtype=np.int64)[labels.values], names)


def _is_integer(text: str) -> bool:
    return len(text) <= _DIGITS and text.removeprefix("-").isdecimal() and text.isascii()


class SampleSet(Protocol):
    """An ordered set of samples that can be counted, read, named and hashed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user, such as which files were left out and why."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: Index) -> Raw:
        """Return the raw samples at these positions."""
        ...

    def names(self, index: Index) -> list[str]:
        """Return the names of these samples in a table of predictions: a file's path or a row's number."""
        ...

    def digests(self, index: Index) -> list[str]:
        """Return a hash of each sample's content."""
        ...


class Samples(SampleSet, Protocol):
    """The samples of one domain for classification."""

    @property
    def kind(self) -> Kind:
        """Whether the samples are feature vectors or images."""
        ...

    @property
    def labels(self) -> Labels | None:
        """The labels; None where the samples were opened without labels, which are then not even read."""
        ...

    def read(self, index: Index, at_least: int = 0) -> Raw:
        """Return the raw samples at these positions.

        Args:
            index: Positions.
            at_least: A decoder may shrink a large image as long as its sides stay at least this long; 0 keeps its size.
        """
        ...

    def shapes(self) -> list[tuple[int, ...]]:
        """Return (d,) for features, or (height, width, channels) of a few images, not decoded where possible."""
        ...


def content_hash(content: bytes) -> str:
    """Hash that identifies the content of one sample."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def array_digests(x: NDArray[Any], index: Index) -> list[str]:
    """Return hashes of the shape and the bytes of these rows of an array."""
    shape = str(x.shape[1:]).encode()
    return [content_hash(shape + x[place].tobytes()) for place in index]


def number_positions(index: Index) -> list[str]:
    """Return the positions, counted from 0, as names."""
    return [str(int(place)) for place in index]


def spread_positions(count: int, most: int = INSPECTED) -> list[int]:
    """Return at most `most` positions, spread evenly over 0..count-1."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, most))})
