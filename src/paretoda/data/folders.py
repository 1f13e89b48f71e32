"""Image folders: class sub-folders for a labelled set, sub-folders without meaning for an unlabelled one."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from paretoda.data.decoding import SUFFIXES
from paretoda.data.errors import DataError
from paretoda.data.files import FileSamples
from paretoda.data.labels import from_names, listed
from paretoda.data.samples import content_hash

_NOT_DATA = "__MACOSX"


def unlabelled_folder(folder: Path) -> FileSamples:
    """All images below the folder, in an order that does not depend on sub-folders: they might be classes."""
    images, others = find_images(folder)
    if not images:
        raise DataError(f"{folder} has no image files; give a folder with images such as .jpg or .png")
    paths = _forgetting_folders(images)
    shown = tuple(str(path.relative_to(folder)) for path in paths)
    return FileSamples(tuple(paths), shown, notes=_ignored(folder, others))


def labelled_folder(folder: Path) -> FileSamples:
    """The images below each sub-folder, which names their class."""
    classes = visible_folders(folder)
    found = {sub.name: find_images(sub) for sub in classes}
    paths = [path for images, _ in found.values() for path in images]
    strays = [path for path in _files(folder) if path.suffix.lower() in SUFFIXES]
    if not paths:
        if strays:
            raise DataError(f"{folder} has images but no labels; put each class into a sub-folder of its own")
        raise DataError(f"{folder} has no image files; give a folder with one sub-folder of images per class")
    names = [name for name, (images, _) in found.items() for _ in images]
    shown = tuple(str(path.relative_to(folder)) for path in paths)
    notes = _ignored(folder, sum(others for _, others in found.values()))
    empty = [name for name, (images, _) in found.items() if not images]
    if empty:
        notes += (f"{folder}: sub-folders without images are no classes: {listed(empty)}.",)
    if strays:
        notes += (f"{folder}: {len(strays)} images outside the class sub-folders are ignored.",)
    return FileSamples(tuple(paths), shown, from_names(names), notes)


def find_images(folder: Path) -> tuple[list[Path], int]:
    """The image files at any depth, sorted by path, and the number of other files; hidden ones do not count."""
    images: list[Path] = []
    others = 0
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = [] if real in seen else sorted(name for name in folders if _is_visible(name))
        if real in seen:  # a link that leads back up
            continue
        seen.add(real)
        visible = [name for name in files if _is_visible(name)]
        found = [Path(place, name) for name in visible if Path(name).suffix.lower() in SUFFIXES]
        images += found
        others += len(visible) - len(found)
    return sorted(images), others


def visible_folders(folder: Path) -> list[Path]:
    """The sub-folders that are neither hidden nor left behind by an archiver, sorted."""
    return sorted(sub for sub in folder.iterdir() if sub.is_dir() and _is_visible(sub.name))


def _forgetting_folders(images: Sequence[Path]) -> list[Path]:
    # Sorted by name, size and, where both are equal, content: moving files between sub-folders changes nothing.
    groups: dict[tuple[str, int], list[Path]] = defaultdict(list)
    for path in images:
        groups[path.name, path.stat().st_size if path.exists() else -1].append(path)
    ordered: list[Path] = []
    for key in sorted(groups):
        group = groups[key]
        ordered += group if len(group) == 1 else sorted(group, key=_content)
    return ordered


def _content(path: Path) -> str:
    return content_hash(path.read_bytes()) if path.is_file() else ""


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file() and _is_visible(path.name)]


def _is_visible(name: str) -> bool:
    return not name.startswith(".") and name != _NOT_DATA


def _ignored(folder: Path, others: int) -> tuple[str, ...]:
    return (f"{folder}: {others} files that are no images are ignored.",) if others else ()
