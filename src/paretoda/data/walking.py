"""The images below a folder: every folder is scanned once, and no file is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from paretoda.data.decoding import SUFFIXES

_NOT_DATA = "__MACOSX"

Stamp = tuple[int, int, int]
"""When a folder's entries last changed (ns), its device and its number there."""


@dataclass(eq=False)
class Walk:
    """What a walk found; names are relative to the folder, with slashes.

    Args:
        images: files whose suffix is one of an image, sorted by folder and name.
        others: the number of other files; by class only those inside the classes count.
        folders: every visible folder that was scanned, and its stamp before the scan; the first is "".
        whole: False where a folder below could not be read.
    """

    images: list[str] = field(default_factory=list)
    others: int = 0
    folders: dict[str, Stamp] = field(default_factory=dict)
    whole: bool = True


def walk(folder: Path, *, by_class: bool) -> Walk:
    """Scan a folder and all below it; links are followed, but not in circles, and hidden names do not count.

    Args:
        folder: where to start.
        by_class: what is linked into two of its sub-folders belongs to both; otherwise it counts once.
    """
    found = Walk()
    root = os.path.realpath(folder)
    below = _scan(folder, "", found)
    if by_class:
        found.others = 0
        for name in below:
            _descend(folder, [name], {root}, found)
    else:
        _descend(folder, below, {root}, found)
    # A slash counts less than any letter, as if the parts of the names were compared one by one.
    found.images.sort(key=lambda name: name.replace("/", "\0"))
    return found


def stamp(folder: Path) -> Stamp:
    """What changes when a file is added to a folder, removed or renamed."""
    known = folder.stat()
    return known.st_mtime_ns, known.st_dev, known.st_ino


def is_visible(name: str) -> bool:
    """Whether a name is neither hidden nor left behind by an archiver."""
    return not name.startswith(".") and name != _NOT_DATA


def is_image(name: str) -> bool:
    """Whether the suffix is one of an image."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _descend(folder: Path, waiting: list[str], seen: set[str], found: Walk) -> None:
    waiting = waiting[::-1]
    while waiting:
        name = waiting.pop()
        real = os.path.realpath(folder / name)
        if real not in seen:  # otherwise a link that leads back up
            seen.add(real)
            waiting += _scan(folder, name, found)[::-1]


def _scan(folder: Path, name: str, found: Walk) -> list[str]:
    """Add a folder's files to what was found; its sub-folders, sorted."""
    place = folder / name
    prefix = f"{name}/" if name else ""
    below = []
    try:
        found.folders[name] = stamp(place)
        entries = os.scandir(place)
    except OSError:
        if not name:
            raise
        found.whole = False  # not ours to read: as if it were empty
        return []
    with entries:
        for entry in entries:
            if not is_visible(entry.name):
                continue
            if _is_folder(entry):
                below.append(prefix + entry.name)
            elif is_image(entry.name):
                found.images.append(prefix + entry.name)
            else:
                found.others += 1
    return sorted(below)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in circles
        return False
