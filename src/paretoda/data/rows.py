"""One domain's samples as tensors, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data.batching import Positions
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.samples import Samples
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import ImageTransform, Transform
from paretoda.errors import DataError

_MEMORY = 2**29
"""Resized images are kept in memory where all of a domain take no more bytes than this."""


class Rows(Protocol):
    """Samples with their transform."""

    @property
    def samples(self) -> Samples:
        """What is transformed."""
        ...

    @property
    def transform(self) -> Transform:
        """How."""
        ...

    def train(self, index: Positions, generator: torch.Generator) -> Tensor:
        """These samples, augmented."""
        ...

    def evaluate(self, index: Positions) -> Tensor:
        """These samples, without chance."""
        ...


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Features, scaled once for all."""

    samples: Samples
    transform: FeatureTransform
    scaled: Tensor

    def train(self, index: Positions, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Rows of the scaled features."""
        return self.scaled[torch.from_numpy(index)]

    def evaluate(self, index: Positions) -> Tensor:
        """The same rows."""
        return self.scaled[torch.from_numpy(index)]


@dataclass(frozen=True, eq=False)
class ImageRows:
    """Images, decoded and resized when they are first needed, and kept where they fit into memory."""

    samples: Samples
    transform: ImageTransform
    kept: NDArray[np.uint8]
    known: NDArray[np.bool_]

    def train(self, index: Positions, generator: torch.Generator) -> Tensor:
        """Augmented anew in every batch."""
        return self.transform.train(self._prepared(index), generator)

    def evaluate(self, index: Positions) -> Tensor:
        """The middle of each image."""
        return self.transform.evaluate(self._prepared(index))

    def _prepared(self, index: Positions) -> NDArray[np.uint8]:
        if not len(self.kept):
            return self.transform.prepare(self.samples.read(index, self.transform.resized))
        new = np.unique(index[~self.known[index]])
        if len(new):
            self.kept[new] = self.transform.prepare(self.samples.read(new, self.transform.resized))
            self.known[new] = True
        return self.kept[index]


def make_feature_rows(samples: Samples, transform: FeatureTransform) -> FeatureRows:
    """All features, scaled."""
    return FeatureRows(samples, transform, transform.evaluate(samples.read(range(len(samples)))))


def make_image_rows(samples: Samples, transform: ImageTransform) -> ImageRows:
    """Images with a memory of their own where they fit; nothing is decoded yet."""
    side = transform.resized
    shape = (side, side) if transform.channels == 1 else (side, side, 3)
    fits = len(samples) * side * side * transform.channels <= _MEMORY
    count = len(samples) if fits else 0
    return ImageRows(samples, transform, np.empty((count, *shape), np.uint8), np.zeros(count, dtype=bool))


def iterate_inputs(
    samples: Samples, transform: Transform, batch_size: int, crops: int = 1, workers: int = 0
) -> Iterator[Tensor]:
    """All samples in their order, in evaluation form: what a trained model predicts on.

    Args:
        samples: of the kind that the transform reads.
        transform: of the model.
        batch_size: rows at a time, about.
        crops: with 10, every image gives ten rows, one after the other.
        workers: threads that read ahead.
    """
    images = transform if isinstance(transform, ImageTransform) else None
    if images is None and crops > 1:
        raise DataError("features have no crops; leave out --crops")

    def rows(places: Positions) -> Tensor:
        raw = samples.read(places, images.resized if images is not None else 0)
        return images.evaluate_crops(raw) if images is not None and crops > 1 else transform.evaluate(raw)

    return prefetch_batches(rows, np.arange(len(samples)), max(1, batch_size // crops), workers)
