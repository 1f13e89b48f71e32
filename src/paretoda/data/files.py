"""Image files as samples: decoded when they are read, checked before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretoda.data.decoding import check_file, decode, shape_of
from paretoda.data.errors import DataError
from paretoda.data.labels import Labels, listed
from paretoda.data.samples import Image8, Index, Kind, Progress, content_hash, peeked


@dataclass(frozen=True, eq=False)
class FileSamples:
    """Image files in a fixed order.

    Args:
        paths: where they are.
        shown: their names in a table of predictions.
        labels: None where they were opened without labels.
        notes: what was left out.
    """

    paths: tuple[Path, ...]
    shown: tuple[str, ...]
    labels: Labels | None = None
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """Files are always images."""
        return "images"

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: Index, at_least: int = 0) -> list[Image8]:
        """Decodes these files, large JPEGs at a fraction of their size where that suffices."""
        return [decode(self.paths[place], at_least) for place in index]

    def names(self, index: Index) -> list[str]:
        """Paths below the folder or as written in the list."""
        return [printable(self.shown[place]) for place in index]

    def digests(self, index: Index) -> list[str]:
        """Hashes of the files' bytes."""
        return [content_hash(self.paths[place].read_bytes()) for place in index]

    def shapes(self) -> list[tuple[int, ...]]:
        """Of a few files, from their headers."""
        return [shape_of(self.paths[place]) for place in peeked(len(self))]


def checked(samples: FileSamples, *, skip_bad: bool, progress: Progress | None) -> FileSamples:
    """The same samples if all files are whole images; with `skip_bad` those that are, and a note that names the others.

    Leaving files out needs certainty, so that every file is then decoded once.
    """
    bad = unreadable(samples.paths, thorough=skip_bad, stop=not skip_bad, progress=progress)
    if not bad:
        return samples
    if not skip_bad:
        raise next(iter(bad.values()))
    keep = np.array([place for place in range(len(samples)) if place not in bad], dtype=np.int64)
    if not keep.size:
        raise DataError(f"none of the {len(samples)} image files can be read; for example, {next(iter(bad.values()))}")
    names = listed(samples.names(sorted(bad)))
    return FileSamples(
        tuple(samples.paths[place] for place in keep),
        tuple(samples.shown[place] for place in keep),
        samples.labels and samples.labels.kept(keep),
        (*samples.notes, f"{len(bad)} unreadable image files were left out: {names}."),
    )


def unreadable(
    paths: Sequence[Path], *, thorough: bool, stop: bool = False, progress: Progress | None = None
) -> dict[int, DataError]:
    """Positions of the files that are not whole images, and why; only the first where `stop` is set."""
    bad: dict[int, DataError] = {}
    for place, path in enumerate(paths):
        try:
            check_file(path, thorough=thorough)
        except DataError as error:
            bad[place] = error
            if stop:
                break
        if progress is not None:
            progress(place + 1, len(paths))
    return bad


def printable(name: str) -> str:
    """The name without bytes that are no UTF-8, so that it can be written into any table."""
    return os.fsencode(name).decode("utf-8", errors="replace")
