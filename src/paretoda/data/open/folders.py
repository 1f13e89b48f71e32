"""Image folders: scanned once, with a cached index for large ones; class sub-folders where labels are wanted."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.core.options import name_some
from paretoda.data.open.arrays import open_npz_file
from paretoda.data.open.decoding import SUFFIXES
from paretoda.data.open.files import FileList, FileSamples, hash_file
from paretoda.data.samples import labels_from_names
from paretoda.errors import DataError, SettingsError
from paretoda.io.cache import INDEX, cache_folder, mark_used
from paretoda.io.files import atomic_file

_NOT_DATA = "__MACOSX"

Stamp = tuple[int, int, int]
"""Time of the last change of a folder's entries (ns), its device and its inode."""
_LAYOUT = 1
"""Version of the cache's files and of the rules of a scan; files of another version are not read."""
_WORTH = 10_000
"""Smallest number of images that is cached; smaller folders are scanned faster than they are loaded."""
_SETTLED = 2_000_000_000
"""A folder that changed within so many ns may change again within one tick of its clock."""


@dataclass(eq=False)
class FolderScan:
    """What a scan found; names are relative to the folder, with slashes.

    Args:
        images: Files with the suffix of an image, sorted by folder and name.
        others: Number of other files; by class only those inside the classes count.
        folders: Every visible folder that was scanned, with its stamp before the scan; the first is "".
        complete: Whether all folders below could be read.
    """

    images: list[str] = field(default_factory=list)
    others: int = 0
    folders: dict[str, Stamp] = field(default_factory=dict)
    complete: bool = True


def scan_folder(folder: Path, *, by_class: bool) -> FolderScan:
    """Scan a folder and all below it; links are followed, but not in circles, and hidden names do not count.

    Args:
        folder: Folder to start from.
        by_class: Whether what is linked into two of its sub-folders belongs to both; otherwise it counts once.
    """
    found = FolderScan()
    root = os.path.realpath(folder)
    below = _scan(folder, "", found)
    if by_class:
        found.others = 0
        for name in below:
            _descend(folder, [name], {root}, found)
    else:
        _descend(folder, below, {root}, found)
    # A slash sorts before any letter, as if the parts of the names were compared one by one.
    found.images.sort(key=lambda name: name.replace("/", "\0"))
    return found


def read_stamp(folder: Path) -> Stamp:
    """Return the stamp of a folder, which changes when a file is added, removed or renamed in it."""
    known = folder.stat()
    return known.st_mtime_ns, known.st_dev, known.st_ino


def is_visible(name: str) -> bool:
    """Return whether a name is neither hidden nor left behind by an archiver."""
    return not name.startswith(".") and name != _NOT_DATA


def is_image(name: str) -> bool:
    """Return whether a name has the suffix of an image."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _descend(folder: Path, waiting: list[str], seen: set[str], found: FolderScan) -> None:
    waiting = waiting[::-1]
    while waiting:
        name = waiting.pop()
        real = os.path.realpath(folder / name)
        if real not in seen:  # otherwise a link that leads back up
            seen.add(real)
            waiting += _scan(folder, name, found)[::-1]


def _scan(folder: Path, name: str, found: FolderScan) -> list[str]:
    """Add a folder's files to what was found and return its sub-folders, sorted."""
    place = folder / name
    prefix = f"{name}/" if name else ""
    below = []
    try:
        found.folders[name] = read_stamp(place)
        entries = os.scandir(place)
    except OSError:
        if not name:
            raise
        found.complete = False  # without permission to read, it counts as empty
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


def scan_with_cache(folder: Path, *, by_class: bool, cached: bool = True) -> FolderScan:
    """Return the scan of a folder, from the cache where that is still valid.

    Args:
        folder: Folder to start from.
        by_class: See `scan_folder`.
        cached: Whether the cache is read and written.
    """
    if not cached:
        return scan_folder(folder, by_class=by_class)
    try:
        file = cache_folder() / INDEX / f"{_key(folder, by_class)}.npz"
    except SettingsError:  # there is no home directory
        return scan_folder(folder, by_class=by_class)
    found = _read(file, folder)
    if found is None:
        before = time.time_ns()
        found = scan_folder(folder, by_class=by_class)
        newest = max(mark[0] for mark in found.folders.values())
        if len(found.images) >= _WORTH and newest < before - _SETTLED and found.complete:
            _write(file, found)
    return found


def _key(folder: Path, by_class: bool) -> str:
    rules = [_LAYOUT, by_class, sorted(SUFFIXES)]
    place = os.fsencode(folder.resolve())
    return hashlib.sha256(json.dumps(rules).encode() + place).hexdigest()[:32]


def _read(file: Path, folder: Path) -> FolderScan | None:
    """Return the stored scan; None where there is none that is still valid."""
    if not file.is_file():
        return None
    try:
        with open_npz_file(file) as arrays:
            facts: dict[str, Any] = json.loads(arrays["facts"].tobytes())
            images = FileList(folder, arrays["images"].tobytes()).names()
        folders = {name: (int(when), int(device), int(number)) for name, (when, device, number) in facts["folders"]}
        fresh = len(images) == facts["images"] and all(
            read_stamp(folder / name) == mark for name, mark in folders.items()
        )
        mark_used(file)
        return FolderScan(images, int(facts["others"]), folders) if fresh and "" in folders else None
    except (DataError, OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, found: FolderScan) -> None:
    facts = {"images": len(found.images), "others": found.others, "folders": list(found.folders.items())}
    images = FileList.of(Path(), found.images).joined
    text = json.dumps(facts).encode()
    with suppress(OSError), atomic_file(file, sync=False) as out:
        np.savez(out, images=np.frombuffer(images, np.uint8), facts=np.frombuffer(text, np.uint8))


def open_unlabelled_folder(folder: Path, *, cached: bool = False) -> FileSamples:
    """Return all images below a folder, in an order that does not depend on sub-folders, which might be classes.

    Args:
        folder: Folder of images, and folders of images.
        cached: Whether the list of a large folder's files is kept for the next run.

    Raises:
        DataError: There are no images.
    """
    found = scan_with_cache(folder, by_class=False, cached=cached)
    if not found.images:
        raise DataError(f"{folder} has no image files; give a folder with images such as .jpg or .png")
    ordered = _sort_without_folders(folder, found.images)
    return FileSamples(FileList.of(folder, ordered), notes=_note_ignored(folder, found.others))


def open_labelled_folder(folder: Path, *, cached: bool = False) -> FileSamples:
    """Return the images below each sub-folder, which names their class.

    Args:
        folder: Folder with one sub-folder for each class.
        cached: Whether the list of a large folder's files is kept for the next run.

    Raises:
        DataError: There are no images in sub-folders.
    """
    found = scan_with_cache(folder, by_class=True, cached=cached)
    inside = [name for name in found.images if "/" in name]
    strays = len(found.images) - len(inside)
    if not inside:
        if strays:
            raise DataError(f"{folder} has images but no labels; put each class into a sub-folder of its own")
        raise DataError(f"{folder} has no image files; give a folder with one sub-folder of images per class")
    names = [name.partition("/")[0] for name in inside]
    notes = _note_ignored(folder, found.others)
    empty = sorted({name for name in found.folders if name and "/" not in name} - set(names))
    if empty:
        notes += (f"{folder}: sub-folders without images are no classes: {name_some(empty)}.",)
    if strays:
        notes += (f"{folder}: {strays} images outside the class sub-folders are ignored.",)
    return FileSamples(FileList.of(folder, inside), labels_from_names(names), notes)


def find_images(folder: Path, *, cached: bool = False) -> tuple[FileList, int]:
    """Return the image files at any depth, sorted by path, and the number of other files; hidden ones do not count."""
    found = scan_with_cache(folder, by_class=False, cached=cached)
    return FileList.of(folder, found.images), found.others


def list_visible_folders(folder: Path) -> list[Path]:
    """Return the sub-folders that are neither hidden nor left behind by an archiver, sorted."""
    return sorted(sub for sub in folder.iterdir() if sub.is_dir() and is_visible(sub.name))


def _sort_without_folders(folder: Path, images: list[str]) -> list[str]:
    # Sorted by name, size and content, so that moving files between sub-folders changes nothing. Only files of equal
    # name are asked for their size, and only those of equal size are read.
    def last(name: str) -> str:
        return name.rpartition("/")[2]

    ordered: list[str] = []
    for _, same in groupby(sorted(images, key=last), key=last):
        group = list(same)
        ordered += group if len(group) == 1 else _sort_by_content(folder, group)
    return ordered


def _sort_by_content(folder: Path, names: list[str]) -> list[str]:
    sizes = {name: _size(folder / name) for name in names}
    ordered: list[str] = []
    for _, same in groupby(sorted(names, key=sizes.__getitem__), key=sizes.__getitem__):
        group = list(same)
        ordered += group if len(group) == 1 else sorted(group, key=lambda name: _hash(folder / name))
    return ordered


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _hash(path: Path) -> str:
    return hash_file(path) if path.is_file() else ""


def _note_ignored(folder: Path, others: int) -> tuple[str, ...]:
    return (f"{folder}: {others} files that are no images are ignored.",) if others else ()
