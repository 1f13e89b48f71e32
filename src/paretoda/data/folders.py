"""Image folders: class sub-folders for a labelled set, sub-folders without meaning for an unlabelled one."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from paretoda.data.errors import DataError
from paretoda.data.file_list import FileList
from paretoda.data.files import FileSamples
from paretoda.data.index_cache import walked
from paretoda.data.labels import from_names, listed
from paretoda.data.samples import content_hash
from paretoda.data.walking import is_visible


def unlabelled_folder(folder: Path, *, cached: bool = False) -> FileSamples:
    """All images below the folder, in an order that does not depend on sub-folders: they might be classes.

    Args:
        folder: of images, and folders of images.
        cached: whether the list of a large folder's files is kept for the next time.
    """
    found = walked(folder, by_class=False, cached=cached)
    if not found.images:
        raise DataError(f"{folder} has no image files; give a folder with images such as .jpg or .png")
    ordered = _forgetting_folders(folder, found.images)
    return FileSamples(FileList.of(folder, ordered), notes=_ignored(folder, found.others))


def labelled_folder(folder: Path, *, cached: bool = False) -> FileSamples:
    """The images below each sub-folder, which names their class; `cached` as above."""
    found = walked(folder, by_class=True, cached=cached)
    inside = [name for name in found.images if "/" in name]
    strays = len(found.images) - len(inside)
    if not inside:
        if strays:
            raise DataError(f"{folder} has images but no labels; put each class into a sub-folder of its own")
        raise DataError(f"{folder} has no image files; give a folder with one sub-folder of images per class")
    names = [name.partition("/")[0] for name in inside]
    notes = _ignored(folder, found.others)
    empty = sorted({name for name in found.folders if name and "/" not in name} - set(names))
    if empty:
        notes += (f"{folder}: sub-folders without images are no classes: {listed(empty)}.",)
    if strays:
        notes += (f"{folder}: {strays} images outside the class sub-folders are ignored.",)
    return FileSamples(FileList.of(folder, inside), from_names(names), notes)


def find_images(folder: Path, *, cached: bool = False) -> tuple[FileList, int]:
    """The image files at any depth, sorted by path, and the number of other files; hidden ones do not count."""
    found = walked(folder, by_class=False, cached=cached)
    return FileList.of(folder, found.images), found.others


def visible_folders(folder: Path) -> list[Path]:
    """The sub-folders that are neither hidden nor left behind by an archiver, sorted."""
    return sorted(sub for sub in folder.iterdir() if sub.is_dir() and is_visible(sub.name))


def _forgetting_folders(folder: Path, images: list[str]) -> list[str]:
    # Sorted by name, then size, then content: moving files between sub-folders changes nothing. Only files of one name
    # are asked for their size, and only those of one size as well are read.
    def last(name: str) -> str:
        return name.rpartition("/")[2]

    ordered: list[str] = []
    for _, same in groupby(sorted(images, key=last), key=last):
        group = list(same)
        ordered += group if len(group) == 1 else _by_content(folder, group)
    return ordered


def _by_content(folder: Path, names: list[str]) -> list[str]:
    sizes = {name: _size(folder / name) for name in names}
    ordered: list[str] = []
    for _, same in groupby(sorted(names, key=sizes.__getitem__), key=sizes.__getitem__):
        group = list(same)
        ordered += group if len(group) == 1 else sorted(group, key=lambda name: _content(folder / name))
    return ordered


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _content(path: Path) -> str:
    return content_hash(path.read_bytes()) if path.is_file() else ""


def _ignored(folder: Path, others: int) -> tuple[str, ...]:
    return (f"{folder}: {others} files that are no images are ignored.",) if others else ()
