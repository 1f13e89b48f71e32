"""Features of a frozen backbone by the content of the images, in files that processes share.

Images are divided by the first letter of their hashes. Each letter has a lock, which a process holds while it encodes
images of that letter, and which the system releases if the process dies. A process that needs images that another one
encodes turns to other letters, and waits when there are no others: every image is encoded once, and the processes share
the work. Files appear complete and are never changed; small ones are replaced by a larger one. The checksums of the zip
format reveal a damaged file, which is removed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.data.open.arrays import open_npz_file
from paretoda.data.samples import content_hash
from paretoda.errors import DataError, SettingsError
from paretoda.io.cache import (
    ABOUT,
    FEATURES,
    cache_folder,
    cache_limit,
    count_images,
    feature_file_name,
    mark_used,
    trim_cache,
)
from paretoda.io.files import atomic_file, write_json
from paretoda.io.lock import try_lock
from paretoda.types import Progress

Array = NDArray[np.float32]
Encode = Callable[[list[int]], Iterator[Array]]
"""Positions of images -> their features, shape (b, d), in batches."""
_PORTION = 256
"""Images that a process encodes before it stores them; other processes encode others meanwhile."""
_SMALL = 256
"""A file with fewer images is merged with the next one that is written."""
_PATIENCE = 0.2
"""Seconds between two looks for what another process encodes."""
_LETTERS = 32
"""Length of a hash."""


def open_store(key: str, about: Mapping[str, Any]) -> FeatureStore:
    """Return the features of one backbone in the cache; a store that keeps nothing where there is no cache.

    Args:
        key: Hash of everything that the features depend on besides the image.
        about: Name of the backbone and size of the images, for `paretoda cache`.
    """
    try:
        folder = cache_folder() / FEATURES / key
    except SettingsError:  # there is no home directory
        return FeatureStore(None)
    return FeatureStore(folder if cache_limit() > 0 else None, about)


@dataclass(frozen=True)
class FeatureStore:
    """The features of one backbone.

    Args:
        folder: Folder of its files; None: nothing is kept.
        about: What the folder says about itself.
    """

    folder: Path | None
    about: Mapping[str, Any] = field(default_factory=dict)

    def fetch(
        self, digests: Sequence[str], encode: Encode, progress: Progress | None = None, what: str = "features"
    ) -> Array:
        """Return the features of images, shape (n, d); those that are not stored are encoded and stored.

        Args:
            digests: Hash of each image, as of `content_hash`; images of the same hash are encoded once.
            encode: Encodes the images at these positions.
            progress: Called with the number of different images whose features are known.
            what: What the progress is called.
        """
        known = _Known(digests)
        searched: set[str] = set()
        known.add(self._find(known.missing, searched))
        while known.missing:
            with self._claim(known.missing) as letters:
                known.add(self._find(known.missing, searched))  # another process may have stored them just now
                own = [digest for digest in known.missing if digest[0] in letters][:_PORTION]
                start = len(known.missing)
                try:
                    for rows in encode([known.missing[digest] for digest in own]):
                        done = start - len(known.missing)
                        known.add([(own[done : done + len(rows)], rows)])
                        known.report(progress, what)
                finally:  # also after an interrupt, or an image that cannot be read
                    self._store(own[: start - len(known.missing)], known)
            if known.missing and not letters:
                known.report(progress, f"waiting for {what}")
                time.sleep(_PATIENCE)
                known.add(self._find(known.missing, searched))
        known.complete(progress)
        return known.rows(digests)

    def _files(self, letter: str) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob(f"{letter}-*.npz"))

    def _find(self, wanted: Mapping[str, int], searched: set[str]) -> Iterator[tuple[list[str], Array]]:
        """Yield hashes and features of wanted images from the files that have not been searched yet."""
        for path in [path for letter in _count_letters(wanted) for path in self._files(letter)]:
            if path.name not in searched:
                searched.add(path.name)
                yield _read(path, wanted)

    @contextmanager
    def _claim(self, missing: Iterable[str]) -> Iterator[set[str]]:
        """Yield letters that no other process encodes inside; enough of them for a portion, if so many are free."""
        letters: set[str] = set()
        rest = _PORTION
        if self.folder is not None and not (self.folder / ABOUT).exists():
            with suppress(OSError):
                write_json(self.folder / ABOUT, dict(self.about))
        with ExitStack() as stack:
            for letter, count in _count_letters(missing).items():
                try:
                    free = self.folder is None or stack.enter_context(try_lock(self.folder / f".{letter}.lock"))
                except OSError:  # a folder without write permission or locks: perhaps images are encoded twice
                    free = True
                if free:
                    letters.add(letter)
                    rest -= count
                if rest <= 0:
                    break
            yield letters

    def _store(self, digests: Sequence[str], known: _Known) -> None:
        """Write the features of these images, if that is possible; the locks of their letters are held."""
        if self.folder is None or not digests:
            return
        with suppress(OSError):
            for letter in _count_letters(digests):
                own = [digest for digest in digests if digest[0] == letter]
                self._write(self.folder, letter, own, known.rows(own))
            trim_cache()

    def _write(self, folder: Path, letter: str, digests: list[str], rows: Array) -> None:
        """Write features of one letter to a new file, together with those of small files, which it replaces."""
        small = [path for path in self._files(letter) if count_images(path) < _SMALL]
        parts = [part for part in map(_read, small) if part[0]]
        names = [name for part, _ in parts for name in part] + digests
        packed = np.frombuffer(bytes.fromhex("".join(names)), np.uint8).reshape(-1, _LETTERS // 2)
        path = folder / feature_file_name(letter, len(names), content_hash(packed.tobytes()))
        with atomic_file(path, sync=False) as file:
            np.savez(file, digests=packed, features=np.concatenate([*(part for _, part in parts), rows]))
        for old in small:
            if old != path:
                old.unlink(missing_ok=True)


class _Known:
    """Features of different images, as far as they are known.

    Args:
        digests: Hashes of the images.
    """

    def __init__(self, digests: Sequence[str]) -> None:
        self.missing: dict[str, int] = {}
        """Hash -> first position of the image, for images whose features are not known."""
        for place, digest in enumerate(digests):
            self.missing.setdefault(digest, place)
        self._places = {digest: place for place, digest in enumerate(self.missing)}
        self._table: Array = np.empty((0, 0), np.float32)
        self._reported: dict[str, int] = {}

    def add(self, found: Iterable[tuple[Sequence[str], Array]]) -> None:
        """Add hashes and features."""
        for digests, rows in found:
            if not digests:
                continue
            if not self._table.size:
                self._table = np.empty((len(self._places), rows.shape[1]), np.float32)
            self._table[[self._places[digest] for digest in digests]] = rows
            for digest in digests:
                self.missing.pop(digest, None)

    def rows(self, digests: Sequence[str]) -> Array:
        """Return the features of images, all of which are known."""
        places = [self._places[digest] for digest in digests]
        return self._table if places == list(range(len(self._table))) else self._table[places]

    def report(self, progress: Progress | None, what: str) -> None:
        """Report how many are known."""
        self._reported[what] = len(self._places) - len(self.missing)
        if progress is not None:
            progress(what, self._reported[what], len(self._places))

    def complete(self, progress: Progress | None) -> None:
        """Report once more what was reported before all were known, perhaps because another process made the rest."""
        for what, done in self._reported.items():
            if done < len(self._places):
                self.report(progress, what)


def _count_letters(digests: Iterable[str]) -> Counter[str]:
    return Counter(digest[0] for digest in digests)


def _read(path: Path, wanted: Container[str] | None = None) -> tuple[list[str], Array]:
    """Return the hashes and features of a file, of all or of the wanted images; nothing of a damaged file."""
    try:
        with open_npz_file(path) as file:
            text = file["digests"].tobytes().hex()
            digests = [text[start : start + _LETTERS] for start in range(0, len(text), _LETTERS)]
            places = [place for place, digest in enumerate(digests) if wanted is None or digest in wanted]
            rows = file["features"] if places else np.empty((len(digests), 0), np.float32)
            if rows.dtype != np.float32 or rows.ndim != 2 or len(rows) != len(digests):
                raise DataError(f"{path} is damaged")
    except (DataError, OSError, KeyError):
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return [], np.empty((0, 0), np.float32)
    if places:
        mark_used(path)
    return [digests[place] for place in places], rows[places]
