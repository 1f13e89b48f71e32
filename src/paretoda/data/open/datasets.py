"""Map-style torch datasets as samples; items are (x, y) or x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from paretoda.data.open.arrays import ArraySamples, make_array_samples, to_array, to_canonical
from paretoda.data.open.decoding import read_pixels
from paretoda.data.samples import (
    Image8,
    Index,
    Kind,
    Labels,
    content_hash,
    labels_from_integers,
    number_positions,
    spread_positions,
)
from paretoda.errors import DataError

_ORIGIN = "the dataset"


@dataclass(frozen=True, eq=False)
class DatasetSamples:
    """Images of a dataset, fetched when they are read; the dataset must return the same item every time.

    Args:
        dataset: Map-style dataset.
        labels: Labels; None where the samples were opened without labels.
        notes: Sentences for the user.
    """

    dataset: Any
    labels: Labels | None = None
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """Kind "images": features are copied into memory instead."""
        return "images"

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, index: Index, at_least: int = 0) -> list[Image8]:  # noqa: ARG002
        """Return the images of these items, in full size."""
        return [_image(_input(self.dataset[int(place)])) for place in index]

    def names(self, index: Index) -> list[str]:
        """Return item numbers from 0."""
        return number_positions(index)

    def digests(self, index: Index) -> list[str]:
        """Return hashes of the images' shape and pixels."""
        return [content_hash(str(image.shape).encode() + image.tobytes()) for image in self.read(index)]

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of a few items."""
        return [
            (*image.shape, 1) if image.ndim == 2 else image.shape for image in self.read(spread_positions(len(self)))
        ]


def open_dataset(dataset: Any, *, labelled: bool) -> ArraySamples | DatasetSamples:
    """Open a map-style dataset; labels, where wanted, are collected in one pass.

    Args:
        dataset: Dataset with a length and items by number.
        labelled: Whether labels are read.

    Raises:
        DataError: The dataset is empty, has no length or items, or no labels where they are wanted.
    """
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise DataError("the dataset has no length or no items by number; give a map-style torch Dataset")
    count = len(dataset)
    if count == 0:
        raise DataError("the dataset has no samples; give at least one")
    first = _input(dataset[0])
    if not isinstance(first, Image.Image) and to_array(first, _ORIGIN).ndim == 1:
        items = [dataset[place] for place in range(count)]
        x = np.stack([to_array(_input(item), _ORIGIN) for item in items])
        return make_array_samples(x, _labels(items) if labelled else None, _classes(dataset), origin=_ORIGIN)
    _image(first)
    if not labelled:
        return DatasetSamples(dataset)
    y = _labels([(None, *_label(dataset[place])) for place in range(count)])
    return DatasetSamples(dataset, labels_from_integers(y, _classes(dataset), _ORIGIN))


def _input(item: Any) -> Any:
    return item[0] if isinstance(item, (tuple, list)) else item


def _label(item: Any) -> tuple[Any, ...]:
    return (item[1],) if isinstance(item, (tuple, list)) and len(item) > 1 else ()


def _labels(items: Sequence[Any]) -> Any:
    labels = [_label(item) for item in items]
    if not all(labels):
        raise DataError("the dataset gives no labels; its items must be pairs (x, y)")
    return np.array([to_array(label[0], _ORIGIN) for label in labels])


def _classes(dataset: Any) -> Any:
    names = getattr(dataset, "classes", None)
    return None if names is None else np.asarray(names)


def _image(x: Any) -> Image8:
    if isinstance(x, Image.Image):
        return read_pixels(x)
    image: Image8 = to_canonical(to_array(x, _ORIGIN)[None], _ORIGIN)[0]
    return image
