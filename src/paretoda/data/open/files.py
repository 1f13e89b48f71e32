"""Image files as samples, decoded when they are read; a few are checked before, or all of them on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from paretoda.core.options import name_some
from paretoda.data.open.decoding import check_file, decode, make_read_error, read_shape
from paretoda.data.prefetching import prefetch, spare_cores
from paretoda.data.samples import Image8, Index, Kind, Labels, content_hash, spread_positions
from paretoda.errors import DataError
from paretoda.types import Progress

_END = b"\0"
"""Separator behind each name: the one character that no file name contains."""
CHECKED_FILES = 1000
"""Number of files of larger sets that are checked before the start, spread evenly; the doctor checks all."""
_REMEMBERED = 2**17
"""Number of files whose hashes are remembered while the process runs."""
Some = TypeVar("Some", bound="FileSet")


@dataclass(frozen=True, eq=False)
class FileList:
    """Files in a fixed order, stored compactly: a million names take the bytes of their letters and five million more.

    Args:
        folder: Folder that the names are relative to.
        joined: All names as the file system spells them, each followed by a zero byte.
    """

    folder: Path
    joined: bytes

    @staticmethod
    def of(folder: Path, names: Iterable[str]) -> FileList:
        """Return the list of files with these names, relative to the folder or absolute."""
        return FileList(folder, b"".join(os.fsencode(name) + _END for name in names))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> Path:
        return self.folder / self.name(place)

    def __iter__(self) -> Iterator[Path]:
        return (self.folder / name for name in self.names())

    def name(self, place: int) -> str:
        """Return the name at a position."""
        place = range(len(self))[place]
        start = int(self._ends[place - 1]) + 1 if place else 0
        return os.fsdecode(self.joined[start : int(self._ends[place])])

    def names(self) -> list[str]:
        """Return all names."""
        return [os.fsdecode(name) for name in self.joined.split(_END)[:-1]]

    def printable_names(self, index: Index) -> list[str]:
        """Return the names at these positions, without bytes that are no UTF-8, for any table."""
        return [os.fsencode(self.name(int(place))).decode("utf-8", errors="replace") for place in index]

    def digests(self, index: Index) -> list[str]:
        """Return hashes of the bytes of the files at these positions."""
        return [hash_file(self[int(place)]) for place in index]

    def select(self, index: Index) -> FileList:
        """Return the files at these positions, in this order."""
        return FileList.of(self.folder, (self.name(int(place)) for place in index))

    @cached_property
    def _ends(self) -> NDArray[Any]:
        ends = np.flatnonzero(np.frombuffer(self.joined, np.uint8) == 0)
        return ends.astype(np.uint32) if len(self.joined) < 2**32 else ends


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, which are read again only if the file has changed since."""
    try:
        known = path.stat()
        return _hash_content(path, (known.st_ctime_ns, known.st_ino, known.st_size))
    except OSError as error:
        raise make_read_error(path, error) from error


@lru_cache(maxsize=_REMEMBERED)
def _hash_content(path: Path, stamp: tuple[int, ...]) -> str:  # noqa: ARG001
    return content_hash(path.read_bytes())


@dataclass(frozen=True, eq=False)
class FileSamples:
    """Image files in a fixed order.

    Args:
        paths: The files; their names stand in tables of predictions.
        labels: Labels; None where the samples were opened without labels.
        notes: Sentences for the user about files that were left out.
    """

    paths: FileList
    labels: Labels | None = None
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """Kind "images"."""
        return "images"

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: Index, at_least: int = 0) -> list[Image8]:
        """Decode these files, large JPEGs at a fraction of their size where that suffices."""
        return [decode(self.paths[place], at_least) for place in index]

    def names(self, index: Index) -> list[str]:
        """Return paths below the folder, or as written in the list."""
        return self.paths.printable_names(index)

    def digests(self, index: Index) -> list[str]:
        """Return hashes of the files' bytes."""
        return self.paths.digests(index)

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of a few files, from their headers."""
        return [read_shape(self.paths[place]) for place in spread_positions(len(self))]

    def select(self, index: Index) -> FileSamples:
        """Return the samples at these positions."""
        labels = self.labels and self.labels.select(np.asarray(index, dtype=np.int64))
        return replace(self, paths=self.paths.select(index), labels=labels)

    def with_notes(self, notes: tuple[str, ...]) -> FileSamples:
        """Return the same samples with other notes."""
        return replace(self, notes=notes)


class FileSet(Protocol):
    """Samples in files, some of which can be dropped."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user."""
        ...

    def __len__(self) -> int: ...

    def names(self, index: Index) -> list[str]:
        """Return the names of these samples in a table."""
        ...

    def select(self: Some, index: Index) -> Some:
        """Return the samples at these positions."""
        ...

    def with_notes(self: Some, notes: tuple[str, ...]) -> Some:
        """Return the same samples with other notes."""
        ...


def check_samples(samples: FileSamples, *, skip_bad: bool, progress: Progress | None) -> FileSamples:
    """Return the samples whose files are whole images; see `drop_failures`.

    A few files of a large set are checked quickly; with `skip_bad` every file is decoded once.
    """
    return drop_failures(
        samples,
        lambda place: check_file(samples.paths[place], thorough=skip_bad),
        ("image files", "unreadable image files"),
        skip_bad=skip_bad,
        progress=progress,
    )


def drop_failures(
    samples: Some,
    check: Callable[[int], None],
    what: tuple[str, str],
    *,
    skip_bad: bool,
    progress: Progress | None,
) -> Some:
    """Check the samples, all of them with `skip_bad`, otherwise a spread of at most `CHECKED_FILES`.

    Args:
        samples: Samples in files.
        check: Raises a `DataError` where the sample at a position cannot be used.
        what: What notes call the samples, and those that cannot be used.
        skip_bad: Whether samples that fail are left out, with a note, instead of raising their error.
        progress: Called after every sample.

    Returns:
        The samples that can be used, with a note where some were left out or not checked.

    Raises:
        DataError: A sample cannot be used and `skip_bad` is not set, or none can be used.
    """
    places = range(len(samples)) if skip_bad else spread_positions(len(samples), CHECKED_FILES)
    bad = find_failures(check, places, stop=not skip_bad, progress=progress)
    if bad and not skip_bad:
        raise next(iter(bad.values()))
    if len(places) < len(samples):
        note = f"Of {len(samples)} {what[0]} {len(places)} were looked at; `paretoda doctor` looks at all."
        return samples.with_notes((*samples.notes, note))
    if not bad:
        return samples
    keep = [place for place in places if place not in bad]
    if not keep:
        raise DataError(f"none of the {len(samples)} {what[0]} can be read; for example, {next(iter(bad.values()))}")
    note = f"{len(bad)} {what[1]} were left out: {name_some(samples.names(sorted(bad)))}."
    return samples.select(keep).with_notes((*samples.notes, note))


def find_unreadable(
    paths: FileList,
    places: Sequence[int],
    *,
    thorough: bool,
    stop: bool = False,
    progress: Progress | None = None,
) -> dict[int, DataError]:
    """Return the positions whose files are no complete images, each with its error.

    Args:
        paths: The files.
        places: Positions to check.
        thorough: Whether the files are decoded; see `check_file`.
        stop: Whether to stop at the first failure.
        progress: Called after every file.
    """

    def check(place: int) -> None:
        check_file(paths[place], thorough=thorough)

    return find_failures(check, places, stop=stop, progress=progress)


def find_failures(
    check: Callable[[int], None], places: Sequence[int], *, stop: bool, progress: Progress | None
) -> dict[int, DataError]:
    """Return the positions at which a check raises, each with its error; the check runs on all cores.

    Args:
        check: Raises a `DataError` where a position fails.
        places: Positions to check.
        stop: Whether to stop at the first failure.
        progress: Called after every position.
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
                progress("checking images", done, len(places))
    return bad
