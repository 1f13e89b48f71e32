"""The folder of caches: what is in it, its size limit, and how it is cleared."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path

from paretoda.errors import SettingsError
from paretoda.io.files import find_unfinished, parse_json

LIMIT = "PARETODA_CACHE_GB"
"""Environment variable with the size limit in gigabytes; 0 keeps nothing."""
FEATURES = "features"
"""Sub-folder with one folder for each frozen backbone; see `paretoda.data.feature_store`."""
INDEX = "index"
"""Sub-folder with the file names of large folders; see `paretoda.data.open.folders`."""
ABOUT = "about.json"
"""File that describes the folder of a backbone."""
_DEFAULT = 5.0
_GIGABYTE = 1e9
_UNFINISHED = 3600.0
"""Seconds after which a file that is being written has been left behind by a process that died."""


def cache_folder() -> Path:
    """Return the folder of caches: $PARETODA_CACHE, or paretoda/ in the user's cache folder.

    Raises:
        SettingsError: The user has no home directory.
    """
    own = os.environ.get("PARETODA_CACHE")
    try:
        return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paretoda"
    except RuntimeError as error:
        raise SettingsError("there is no home directory for the cache; name a folder with PARETODA_CACHE") from error


def cache_limit() -> float:
    """Return how many bytes the cache may have: $PARETODA_CACHE_GB, or 5 GB.

    Raises:
        SettingsError: The variable is no number of gigabytes.
    """
    text = os.environ.get(LIMIT, "").strip()
    try:
        limit = float(text or _DEFAULT) * _GIGABYTE
    except ValueError:
        limit = -1.0
    if not (isfinite(limit) and limit >= 0):
        raise SettingsError(f"{LIMIT} is {text[:40]!r}; it must be a number of gigabytes, such as 5, or 0 for no cache")
    return limit


def mark_used(path: Path) -> None:
    """Make a file the last one that `trim_cache` removes: the modification time of a cache's file is its last use."""
    with suppress(OSError):
        os.utime(path)


@dataclass(frozen=True)
class CacheFile:
    """A file in the cache.

    Args:
        path: Path of the file.
        size: Number of bytes.
        used: Time of its last use, in seconds since 1970.
    """

    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class CacheEntry:
    """Files of the cache that belong together.

    Args:
        kind: "features" or "index".
        name: The backbone and the image size, or what the files are.
        items: Number of images, or of folders whose file names are kept.
        size: Number of bytes.
        used: Time of the last use, in seconds since 1970.
    """

    kind: str
    name: str
    items: int
    size: int
    used: float


def list_cache() -> list[CacheEntry]:
    """Return what the cache has, the last used first."""
    groups: dict[Path, list[CacheFile]] = {}
    for file in _find_files():
        groups.setdefault(file.path.parent, []).append(file)
    entries = [_describe(folder, files) for folder, files in groups.items()]
    return sorted(entries, key=lambda entry: entry.used, reverse=True)


def trim_cache() -> None:
    """Remove the files that were not used for the longest time until the cache is within its limit."""
    files = sorted(_find_files(), key=lambda file: file.used)
    excess = sum(file.size for file in files) - cache_limit()
    for file in files:
        if excess <= 0:
            return
        _remove(file)
        excess -= file.size


def clear_cache(unused_for: float = 0.0) -> int:
    """Remove the files that were not used for so many seconds, all of them by default; return their bytes."""
    latest = time.time() - unused_for if unused_for else inf
    files = [file for file in _find_files() if file.used <= latest]
    for file in files:
        _remove(file)
    return sum(file.size for file in files)


def feature_file_name(bucket: str, count: int, content: str) -> str:
    """Return the name of a file of features.

    Args:
        bucket: First letter of the hashes of its images.
        count: Number of its images.
        content: Hash of everything in it.
    """
    return f"{bucket}-{count}-{content}.npz"


def count_images(path: Path) -> int:
    """Return the number of images in a file of features, which its name has; 0 where it has none."""
    parts = path.name.split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 0


def _describe(folder: Path, files: list[CacheFile]) -> CacheEntry:
    size, used = sum(file.size for file in files), max(file.used for file in files)
    if folder.name == INDEX:
        return CacheEntry(INDEX, "file names of large folders", len(files), size, used)
    name = "written by an older version"
    with suppress(OSError, ValueError, KeyError, TypeError):
        about = parse_json((folder / ABOUT).read_bytes())
        name = f"{about['backbone']}, {about['size']} px"
    return CacheEntry(FEATURES, name, sum(count_images(file.path) for file in files), size, used)


def _find_files() -> Iterator[CacheFile]:
    """Find everything that is kept, and what processes that died have left behind."""
    try:
        places = [cache_folder() / kind for kind in (FEATURES, INDEX)]
    except SettingsError:  # there is no home directory, and so no cache
        return
    for place in places:
        for path in [*place.rglob("*.npz"), *place.rglob("*.safetensors"), *find_unfinished(place)]:
            with suppress(FileNotFoundError):  # another process has just removed it
                known = path.stat()
                if not path.name.startswith(".") or time.time() - known.st_mtime > _UNFINISHED:
                    yield CacheFile(path, known.st_size, known.st_mtime)


def _remove(file: CacheFile) -> None:
    """Remove a file, and the folder of a backbone with its last one; whoever reads the file at the moment still can."""
    with suppress(OSError):
        file.path.unlink(missing_ok=True)
        folder = file.path.parent
        if folder.name not in (FEATURES, INDEX) and not any(folder.glob("*.npz")):
            (folder / ABOUT).unlink(missing_ok=True)
            folder.rmdir()
