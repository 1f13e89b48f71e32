"""One domain's samples behind small protocols, wherever they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paretoda.data.labels import Labels

Kind = Literal["features", "images"]
Index: TypeAlias = "Sequence[int] | NDArray[np.int64]"
Image8: TypeAlias = NDArray[np.uint8]
"""One image, shape (h, w) where it is grey or (h, w, 3)."""
Raw: TypeAlias = "NDArray[Any] | Sequence[Image8]"
"""Features (n, d) float32, or images: one uint8 array (n, h, w[, 3]), or a list of arrays of several sizes."""

INSPECTED = 16
"""Number of samples that are inspected to learn what the images are like."""


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


def fingerprint(samples: Samples) -> str:
    """Return a hash of all samples in their order, without their labels and names: the key of a cache."""
    everything = hashlib.sha256(samples.kind.encode())
    for digest in samples.digests(range(len(samples))):
        everything.update(digest.encode())
    return everything.hexdigest()


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
