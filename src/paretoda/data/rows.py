"""One domain's samples as tensors, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data.batching import Positions
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.samples import Samples, SampleSet
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import ImageTransform, Transform
from paretoda.errors import DataError

_MEMORY = 2**29
"""Resized images of a domain are kept in memory where all of them together take no more bytes than this."""


class EvaluationRows(Protocol):
    """Samples with their transform, as evaluation reads them."""

    @property
    def samples(self) -> SampleSet:
        """The samples that are transformed."""
        ...

    @property
    def transform(self) -> Any:
        """The transform."""
        ...

    def evaluate(self, index: Positions) -> Tensor:
        """Return these samples as tensors, without any randomness."""
        ...


class Rows(EvaluationRows, Protocol):
    """Samples for classification with their transform."""

    @property
    def samples(self) -> Samples:
        """The samples that are transformed."""
        ...

    @property
    def transform(self) -> Transform:
        """The transform."""
        ...

    def train(self, index: Positions, generator: torch.Generator) -> Tensor:
        """Return these samples as tensors, augmented."""
        ...


@dataclass(frozen=True, eq=False)
class ArrayCache:
    """Arrays of one shape and type uint8 that are made when they are first needed, and kept.

    Args:
        kept: The arrays, shape (n, ...); n = 0 where they do not fit into memory and nothing is kept.
        known: Which of them have been made, shape (n,).
    """

    kept: NDArray[np.uint8]
    known: NDArray[np.bool_]

    @staticmethod
    def make(count: int, shape: tuple[int, ...]) -> ArrayCache:
        """Return an empty cache for `count` arrays of this shape."""
        return ArrayCache(np.empty((count, *shape), np.uint8), np.zeros(count, dtype=bool))

    def fetch(self, index: Positions, load: Callable[[Positions], NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Return the arrays at these positions.

        Args:
            index: Positions, shape (b,).
            load: Makes the arrays at positions that are not known yet.
        """
        if not len(self.kept):
            return load(index)
        new = np.unique(index[~self.known[index]])
        if len(new):
            self.kept[new] = load(new)
            self.known[new] = True
        return self.kept[index]


def fits_in_memory(count: int, values: int) -> bool:
    """Return whether `count` arrays of so many bytes each may be kept in memory."""
    return count * values <= _MEMORY


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Features, scaled once.

    Args:
        samples: The samples, of kind "features".
        transform: The scaling.
        scaled: All features after scaling, shape (n, d).
    """

    samples: Samples
    transform: FeatureTransform
    scaled: Tensor

    def train(self, index: Positions, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return rows of the scaled features; nothing is augmented."""
        return self.scaled[torch.from_numpy(index)]

    def evaluate(self, index: Positions) -> Tensor:
        """Return rows of the scaled features."""
        return self.scaled[torch.from_numpy(index)]


@dataclass(frozen=True, eq=False)
class ImageRows:
    """Images, decoded and resized when they are first needed, and kept where they fit into memory.

    Args:
        samples: The samples, of kind "images".
        transform: The transform.
        cache: The resized images.
    """

    samples: Samples
    transform: ImageTransform
    cache: ArrayCache

    def train(self, index: Positions, generator: torch.Generator) -> Tensor:
        """Return these images, augmented anew in every batch."""
        return self.transform.train(self.cache.fetch(index, self._load), generator)

    def evaluate(self, index: Positions) -> Tensor:
        """Return the middle of each of these images."""
        return self.transform.evaluate(self.cache.fetch(index, self._load))

    def _load(self, index: Positions) -> NDArray[np.uint8]:
        return self.transform.prepare(self.samples.read(index, self.transform.resized))


def make_feature_rows(samples: Samples, transform: FeatureTransform) -> FeatureRows:
    """Return the rows of features, all of them scaled."""
    return FeatureRows(samples, transform, transform.evaluate(samples.read(range(len(samples)))))


def make_source_rows(
    samples: Samples, transforms: Sequence[FeatureTransform], domain: NDArray[np.int64]
) -> FeatureRows:
    """Return the rows of several sources, each scaled by its own transform.

    Args:
        samples: Features of all sources, one source after the other.
        transforms: The transform of each source; `FeatureRows.transform` is the first one.
        domain: Number of the source of each sample, shape (n,).
    """
    raw = np.asarray(samples.read(range(len(samples))))
    scaled = [transform.evaluate(raw[domain == number]) for number, transform in enumerate(transforms)]
    return FeatureRows(samples, transforms[0], torch.cat(scaled))


def make_image_rows(samples: Samples, transform: ImageTransform) -> ImageRows:
    """Return the rows of images, with a cache where they fit into memory; nothing is decoded yet."""
    side = transform.resized
    shape = (side, side) if transform.channels == 1 else (side, side, 3)
    fits = fits_in_memory(len(samples), side * side * transform.channels)
    return ImageRows(samples, transform, ArrayCache.make(len(samples) if fits else 0, shape))


def iterate_inputs(
    samples: Samples,
    transform: Transform,
    batch_size: int,
    crops: int = 1,
    workers: int = 0,
    positions: Positions | None = None,
) -> Iterator[Tensor]:
    """Return samples in evaluation form, for a trained model to predict.

    Args:
        samples: Samples of the kind that the transform reads.
        transform: Transform of the model.
        batch_size: Approximate number of rows at a time.
        crops: 1, or 10 for ten rows for every image, one after the other.
        workers: Threads that read ahead.
        positions: Positions of the samples; None: all of them, in their order.

    Raises:
        DataError: Crops are wanted of features.
    """
    images = transform if isinstance(transform, ImageTransform) else None
    if images is None and crops > 1:
        raise DataError("features have no crops; leave out --crops")

    def rows(index: Positions) -> Tensor:
        raw = samples.read(index, images.resized if images is not None else 0)
        return images.evaluate_crops(raw) if images is not None and crops > 1 else transform.evaluate(raw)

    every = np.arange(len(samples)) if positions is None else positions
    return prefetch_batches(rows, every, max(1, batch_size // crops), workers)
