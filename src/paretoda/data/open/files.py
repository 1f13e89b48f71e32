"""Image files as samples, decoded when they are read; a few are checked before, or all of them on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.data.labels import Labels, shorten_names
from paretoda.data.open.decoding import check_file, decode, read_shape
from paretoda.data.prefetching import prefetch, spare_cores
from paretoda.data.samples import Image8, Index, Kind, Progress, content_hash, spread_positions
from paretoda.errors import DataError

_END = b"\0"
"""Behind each name: the one character that no name of a file has."""


@dataclass(frozen=True, eq=False)
class FileList:
    """Files in a fixed order: a million names take as many bytes as they have letters, and five million more.

    Args:
        folder: where the names start.
        joined: all names as the file system spells them, a zero byte behind each.
    """

    folder: Path
    joined: bytes

    @staticmethod
    def of(folder: Path, names: Iterable[str]) -> FileList:
        """The files of these names, relative to the folder or absolute."""
        return FileList(folder, b"".join(os.fsencode(name) + _END for name in names))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> Path:
        return self.folder / self.name(place)

    def __iter__(self) -> Iterator[Path]:
        return (self.folder / name for name in self.names())

    def name(self, place: int) -> str:
        """The name at a position."""
        place = range(len(self))[place]
        start = int(self._ends[place - 1]) + 1 if place else 0
        return os.fsdecode(self.joined[start : int(self._ends[place])])

    def names(self) -> list[str]:
        """All names."""
        return [os.fsdecode(name) for name in self.joined.split(_END)[:-1]]

    def kept(self, keep: Index) -> FileList:
        """The files at these positions, in this order."""
        return FileList.of(self.folder, (self.name(int(place)) for place in keep))

    @cached_property
    def _ends(self) -> NDArray[Any]:
        ends = np.flatnonzero(np.frombuffer(self.joined, np.uint8) == 0)
        return ends.astype(np.uint32) if len(self.joined) < 2**32 else ends


CHECKED_FILES = 1000
"""Of larger sets so many files are looked at before the start, spread evenly; the doctor looks at all."""


@dataclass(frozen=True, eq=False)
class FileSamples:
    """Image files in a fixed order.

    Args:
        paths: where they are; their names stand in tables of predictions.
        labels: None where they were opened without labels.
        notes: what was left out.
    """

    paths: FileList
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
        return [to_printable(self.paths.name(place)) for place in index]

    def digests(self, index: Index) -> list[str]:
        """Hashes of the files' bytes."""
        return [content_hash(self.paths[place].read_bytes()) for place in index]

    def shapes(self) -> list[tuple[int, ...]]:
        """Of a few files, from their headers."""
        return [read_shape(self.paths[place]) for place in spread_positions(len(self))]

    def kept(self, keep: Index) -> FileSamples:
        """These samples."""
        labels = self.labels and self.labels.kept(np.asarray(keep, dtype=np.int64))
        return replace(self, paths=self.paths.kept(keep), labels=labels)


def check_samples(samples: FileSamples, *, skip_bad: bool, progress: Progress | None) -> FileSamples:
    """The same samples if those files that are looked at are whole images.

    With `skip_bad` those that are, and a note that names the others: leaving files out needs certainty, so that every
    file is then decoded once.
    """
    places = range(len(samples)) if skip_bad else spread_positions(len(samples), CHECKED_FILES)
    bad = find_unreadable(samples.paths, places, thorough=skip_bad, stop=not skip_bad, progress=progress)
    if bad and not skip_bad:
        raise next(iter(bad.values()))
    if len(places) < len(samples):
        note = f"Of {len(samples)} image files {len(places)} were looked at; `paretoda doctor` looks at all."
        return replace(samples, notes=(*samples.notes, note))
    if not bad:
        return samples
    keep = [place for place in places if place not in bad]
    if not keep:
        raise DataError(f"none of the {len(samples)} image files can be read; for example, {next(iter(bad.values()))}")
    note = f"{len(bad)} unreadable image files were left out: {shorten_names(samples.names(sorted(bad)))}."
    return replace(samples.kept(keep), notes=(*samples.notes, note))


def find_unreadable(
    paths: FileList,
    places: Sequence[int],
    *,
    thorough: bool,
    stop: bool = False,
    progress: Progress | None = None,
) -> dict[int, DataError]:
    """Those of the positions whose files are not whole images, and why; only the first where `stop` is set."""

    def check(place: int) -> None:
        check_file(paths[place], thorough=thorough)

    return find_failures(check, places, stop=stop, progress=progress)


def find_failures(
    check: Callable[[int], None], places: Sequence[int], *, stop: bool, progress: Progress | None
) -> dict[int, DataError]:
    """The positions at which a check raises, and what; it runs on all cores.

    Args:
        check: of one position.
        places: all positions.
        stop: after the first.
        progress: called after every position.
    """

    def error_at(place: int) -> DataError | None:
        try:
            check(place)
        except DataError as error:
            return error
        return None

    bad: dict[int, DataError] = {}
    with closing(prefetch(error_at, places, spare_cores())) as errors:
        for done, (place, error) in enumerate(zip(places, errors, strict=True), start=1):
            if error is not None:
                bad[place] = error
                if stop:
                    break
            if progress is not None:
                progress(done, len(places))
    return bad


def to_printable(name: str) -> str:
    """The name without bytes that are no UTF-8, so that it can be written into any table."""
    return os.fsencode(name).decode("utf-8", errors="replace")
