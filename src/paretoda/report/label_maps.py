"""Label maps in pictures: their colours, overlays, maps of uncertainty, and the overlap of classes."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paretoda.data.samples import Image8
from paretoda.report.thumbnails import make_picture

Colours = Sequence[tuple[int, int, int]]
IGNORED = (0, 0, 0)
"""Colour of pixels without a class."""


@dataclass(frozen=True)
class MapCard:
    """An image and its predicted label map, as data URIs.

    Args:
        name: Name of the image.
        image: The image.
        prediction: The label map in colours.
        entropy: Map of uncertainty, bright where the model is uncertain.
        confidence: Mean confidence over the pixels.
        oracle_labels: The true label map, where target labels were given.
    """

    name: str
    image: str
    prediction: str
    entropy: str
    confidence: float
    oracle_labels: str | None = None


@dataclass(frozen=True)
class Overlap:
    """Intersection over union of every class.

    Args:
        heading: Whose pixels were counted.
        classes: Names of the classes.
        colours: Colours of the classes, as #rrggbb.
        iou: Fractions; not-a-number for a class that neither occurs nor is predicted.
        miou: Mean over the others.
        oracle: Whether target labels were used.
    """

    heading: str
    classes: Sequence[str]
    colours: Sequence[str]
    iou: Sequence[float]
    miou: float
    oracle: bool = False

    def rows(self) -> list[tuple[str, str, float | None]]:
        """Return name, colour and overlap of each class, None where there is none."""
        values = [None if math.isnan(value) else value for value in self.iou]
        return list(zip(self.classes, self.colours, values, strict=True))


def to_hex(colours: Colours) -> list[str]:
    """Return #rrggbb of each colour.

    >>> to_hex([(255, 0, 16)])
    ['#ff0010']
    """
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in colours]


def paint_map(labels: NDArray[np.uint8], colours: Colours) -> Image8:
    """Paint a label map (h, w) in its classes' colours, (h, w, 3)."""
    table = np.zeros((256, 3), np.uint8)
    table[:] = IGNORED
    table[: len(colours)] = np.array(colours, np.uint8)
    image: Image8 = table[labels]
    return image


def overlay_map(image: Image8, labels: NDArray[np.uint8], colours: Colours, strength: float = 0.55) -> Image8:
    """Paint a label map transparently over its image (h, w, 3); unlabelled pixels are unchanged."""
    mixed = (1 - strength) * image + strength * paint_map(labels, colours)
    found: Image8 = np.where((labels < len(colours))[..., None], np.rint(mixed), image).astype(np.uint8)
    return found


def paint_heat(values: NDArray[np.float32]) -> Image8:
    """Paint values 0..1 of shape (h, w) from black over red and yellow to white, (h, w, 3)."""
    levels = np.clip(values, 0, 1)[..., None] * 3 - np.arange(3)
    image: Image8 = np.rint(255 * np.clip(levels, 0, 1)).astype(np.uint8)
    return image


def encode_png(labels: NDArray[np.uint8], colours: Colours) -> bytes:
    """Return a PNG with a palette: the pixels are the class numbers, viewers show the colours."""
    from PIL import Image  # noqa: PLC0415

    picture = Image.frombytes("P", labels.shape[::-1], np.ascontiguousarray(labels).tobytes())
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(colours)] = np.array(colours, np.uint8)
    picture.putpalette(palette.flatten().tolist())
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def make_map_card(
    name: str,
    image: Image8,
    labels: NDArray[np.uint8],
    uncertain: tuple[NDArray[np.float32], float],
    colours: Colours,
    oracle_labels: NDArray[np.uint8] | None = None,
) -> MapCard:
    """Return the card of one image.

    Args:
        name: Name of the image.
        image: The image, shape (h, w, 3).
        labels: Predicted label map, shape (h, w).
        uncertain: Entropies 0..1, shape (h, w), and the mean confidence.
        colours: Colours of the classes.
        oracle_labels: True label map, shape (h, w), where target labels were given.
    """
    return MapCard(
        name,
        make_picture(image, photo=True),
        make_picture(paint_map(labels, colours), photo=False),
        make_picture(paint_heat(uncertain[0]), photo=True),
        uncertain[1],
        None if oracle_labels is None else make_picture(paint_map(oracle_labels, colours), photo=False),
    )
