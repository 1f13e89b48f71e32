"""The file names of large folders are kept in the user's cache, so that the next run need not scan them again.

A kept list counts only where every folder still has the stamp that it had before the scan. It is no more than that: a
cache that is stale, damaged, missing or cannot be written changes nothing but the time.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.data.decoding import SUFFIXES
from paretoda.data.errors import DataError
from paretoda.data.file_list import FileList
from paretoda.data.npz import reading_npz
from paretoda.data.walking import Walk, stamp, walk

_LAYOUT = 1
"""Of the cache's files and of the walk's rules: another number, and nothing older is read."""
_WORTH = 10_000
"""Smaller folders are scanned faster than remembered."""
_SETTLED = 2_000_000_000
"""A folder that changed so few ns ago may change again within one tick of its clock."""


def cache_folder() -> Path:
    """Where things are kept that can be made again: $PARETODA_CACHE, or paretoda/ in the user's cache folder."""
    own = os.environ.get("PARETODA_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paretoda"


def walked(folder: Path, *, by_class: bool, cached: bool = True) -> Walk:
    """The walk of a folder, from the cache where that still holds.

    Args:
        folder: where to start.
        by_class: see `walk`.
        cached: False neither reads nor writes the cache.
    """
    if not cached:
        return walk(folder, by_class=by_class)
    try:
        file = cache_folder() / "index" / f"{_key(folder, by_class)}.npz"
    except RuntimeError:  # nobody's home
        return walk(folder, by_class=by_class)
    found = _read(file, folder)
    if found is None:
        before = time.time_ns()
        found = walk(folder, by_class=by_class)
        newest = max(mark[0] for mark in found.folders.values())
        if len(found.images) >= _WORTH and newest < before - _SETTLED and found.whole:
            _write(file, found)
    return found


def _key(folder: Path, by_class: bool) -> str:
    rules = [_LAYOUT, by_class, sorted(SUFFIXES)]
    place = os.fsencode(folder.resolve())
    return hashlib.sha256(json.dumps(rules).encode() + place).hexdigest()[:32]


def _read(file: Path, folder: Path) -> Walk | None:
    """The kept walk; None where there is none that can be trusted."""
    if not file.is_file():
        return None
    try:
        with reading_npz(file) as arrays:
            facts: dict[str, Any] = json.loads(arrays["facts"].tobytes())
            images = FileList(folder, arrays["images"].tobytes()).names()
        folders = {name: (int(when), int(device), int(number)) for name, (when, device, number) in facts["folders"]}
        fresh = len(images) == facts["images"] and all(stamp(folder / name) == mark for name, mark in folders.items())
        return Walk(images, int(facts["others"]), folders) if fresh and "" in folders else None
    except (DataError, OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, found: Walk) -> None:
    facts = {"images": len(found.images), "others": found.others, "folders": list(found.folders.items())}
    images = FileList.of(Path(), found.images).joined
    text = json.dumps(facts).encode()
    temporary = None
    with suppress(OSError):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            # Not forced onto the disk: a file that a crash tears fails its checksums and is made again.
            descriptor, temporary = tempfile.mkstemp(dir=file.parent)
            with os.fdopen(descriptor, "wb") as out:
                np.savez(out, images=np.frombuffer(images, np.uint8), facts=np.frombuffer(text, np.uint8))
            Path(temporary).replace(file)
        except BaseException:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)
            raise
