"""One domain's samples behind one small protocol, wherever they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
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
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, all) now and then during something long."""

PEEKED = 16
"""So many samples are looked at to learn what the images are like."""


class Samples(Protocol):
    """A domain: how many samples, what they are, and how to read some of them."""

    @property
    def kind(self) -> Kind:
        """Vectors or images."""
        ...

    @property
    def labels(self) -> Labels | None:
        """None where the samples were opened without labels: these were then not even read."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know: files that were left out, and why."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: Index, at_least: int = 0) -> Raw:
        """The raw samples at these positions; a decoder may shrink large images to sides of `at_least` or more."""
        ...

    def names(self, index: Index) -> list[str]:
        """What a table of predictions calls these samples: a file's path or a row's number."""
        ...

    def digests(self, index: Index) -> list[str]:
        """A hash of each sample's content."""
        ...

    def shapes(self) -> list[tuple[int, ...]]:
        """(d,) for features; (height, width, channels) of a few images, without decoding them where possible."""
        ...


def fingerprint(samples: Samples) -> str:
    """A hash of all samples in their order, without their labels and names: the key of a cache."""
    everything = hashlib.sha256(samples.kind.encode())
    for digest in samples.digests(range(len(samples))):
        everything.update(digest.encode())
    return everything.hexdigest()


def content_hash(content: bytes) -> str:
    """What identifies one sample."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def spread_positions(count: int, most: int = PEEKED) -> list[int]:
    """A few positions, spread evenly."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, most))})
