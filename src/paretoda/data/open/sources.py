"""Several sources as one set of samples that remembers where each of them is from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.core.options import join_words, name_some
from paretoda.data.samples import Index, Kind, Labels, Raw, Samples, match_labels
from paretoda.errors import DataError


@dataclass(frozen=True, eq=False)
class JoinedSamples:
    """The samples of several domains, one domain after the other.

    Args:
        parts: The domains, of one kind.
        labels: The labels of all samples, with the classes of the first domain; None where they are opened without.
    """

    parts: tuple[Samples, ...]
    labels: Labels | None

    @property
    def kind(self) -> Kind:
        """Whether the samples are feature vectors or images."""
        return self.parts[0].kind

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user, each with the number of its source."""
        return tuple(f"Source {place}: {note}" for place, part in enumerate(self.parts, start=1) for note in part.notes)

    @property
    def domain(self) -> NDArray[np.int64]:
        """Number of the domain of each sample, from 0, shape (n,)."""
        return np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def read(self, index: Index, at_least: int = 0) -> Raw:
        """Return the raw samples at these positions."""
        rows = self._collect(index, lambda part, own: part.read(own, at_least))
        return np.stack(rows) if self.kind == "features" else rows

    def names(self, index: Index) -> list[str]:
        """Return the names of these samples."""
        return self._collect(index, lambda part, own: part.names(own))

    def digests(self, index: Index) -> list[str]:
        """Return a hash of each sample's content."""
        return self._collect(index, lambda part, own: part.digests(own))

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of a few samples of each domain."""
        return [shape for part in self.parts for shape in part.shapes()]

    def _collect(self, index: Index, read: Callable[[Samples, NDArray[np.int64]], Any]) -> list[Any]:
        """Return what `read` makes of these samples, in their order."""
        places = np.asarray(index, dtype=np.int64)
        found: list[Any] = [None] * len(places)
        borders = np.cumsum([0, *(len(part) for part in self.parts)])
        for part, (start, end) in zip(self.parts, pairwise(borders.tolist()), strict=True):
            chosen = np.flatnonzero((start <= places) & (places < end))
            if len(chosen):
                for place, value in zip(chosen, read(part, places[chosen] - start), strict=True):
                    found[place] = value
        return found


def open_sources(sources: Sequence[Any], open_source: Callable[[Any], Samples]) -> Samples:
    """Open several labelled sources as one set; their classes are matched by name, in the order of the first source.

    Args:
        sources: The sources, each in any form that a single source may have.
        open_source: Opens one of them, and raises a `DataError` where it is none.

    Returns:
        `JoinedSamples`, or the samples of the only source.

    Raises:
        DataError: A source cannot be used, or has other classes, features or samples than the first.

    Examples:
        >>> from paretoda.data.open.samples import open_samples
        >>> first = np.eye(4), [0, 1, 0, 1], ["cat", "dog"]
        >>> second = np.ones((2, 4)), [0, 1], ["dog", "cat"]
        >>> joined = open_sources([first, second], lambda what: open_samples(what, labelled=True))
        >>> joined.labels.values.tolist(), joined.domain.tolist()
        ([0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1])
    """
    parts = []
    for number, source in enumerate(sources, start=1):
        try:
            parts.append(open_source(source))
        except DataError as error:
            if len(sources) == 1:
                raise
            raise DataError(f"source {number}: {error}") from error
    if not parts:
        raise DataError("the list of sources is empty; give at least one")
    if len(parts) == 1:
        return parts[0]
    labels = [_require(part.labels) for part in parts]
    for number, (part, own) in enumerate(zip(parts[1:], labels[1:], strict=True), start=2):
        _check_form(number, part, parts[0])
        _check_classes(number, own, labels[0])
    classes = labels[0].classes
    values = [match_labels(own, classes, "the source").values for own in labels]
    return JoinedSamples(tuple(parts), Labels(np.concatenate(values), classes))


def _require(labels: Labels | None) -> Labels:
    assert labels is not None  # sources are opened with labels
    return labels


def _check_form(number: int, part: Samples, first: Samples) -> None:
    """Raise a `DataError` unless a source is images like the first one, or has as many features."""
    if part.kind != first.kind:
        raise DataError(f"source {number} is {part.kind}, source 1 is {first.kind}; give all in the same form")
    if part.kind == "features" and part.shapes()[0] != first.shapes()[0]:
        ours, theirs = part.shapes()[0][0], first.shapes()[0][0]
        raise DataError(
            f"source {number} has {ours} features, source 1 has {theirs}; give all sources the same features"
        )


def _check_classes(number: int, labels: Labels, first: Labels) -> None:
    """Raise a `DataError` that names what differs unless both have the same classes, in whatever order."""
    missing = [name for name in first.classes if name not in labels.classes]
    more = [name for name in labels.classes if name not in first.classes]
    if missing or more:
        differences = [f"lacks {name_some(missing)}"] * bool(missing) + [f"has {name_some(more)} besides"] * bool(more)
        raise DataError(
            f"source {number} {join_words(differences)}, compared with the classes of source 1; give all sources the "
            "same classes, for arrays by name: (x, y, classes)"
        )
