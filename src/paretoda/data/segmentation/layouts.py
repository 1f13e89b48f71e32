"""Which files make a scene: the layouts of GTA5, Cityscapes, SYNTHIA, CamVid, and plain pairs of folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from paretoda.data.open.files import FileList
from paretoda.data.open.folders import find_images, open_unlabelled_folder
from paretoda.data.segmentation.label_tables import (
    CAMVID,
    CITYSCAPES,
    CITYSCAPES_TRAIN_IDS,
    SYNTHIA,
    LabelTable,
    read_palette,
)
from paretoda.data.segmentation.samples import FileScenes
from paretoda.errors import DataError

SLACK = 16
"""Largest difference, in pixels, between the sizes of an image and its labels in GTA5, where a few files differ."""

_LEFT = "_leftImg8bit"
_SPLITS = ("train", "val", "test")
_TELLING = (7, 8, 11, 23, 26)
"""Ids whose colours distinguish Cityscapes' palette from others."""


@dataclass(frozen=True)
class FolderRequest:
    """What is wanted from a folder.

    Args:
        folder: Folder that the user gave.
        labelled: Whether labels are wanted; with False only the existence of label folders is checked.
        split: Split of Cityscapes and CamVid.
        cached: Whether the list of a large folder's files is kept for the next run.
    """

    folder: Path
    labelled: bool
    split: str
    cached: bool = False


def find_scenes(request: FolderRequest) -> FileScenes:
    """Return the scenes of a folder in the first layout that fits; `table` is None where the layout leaves it open.

    Raises:
        DataError: Labels are wanted and no layout fits, or there are no images.
    """
    layouts: tuple[Callable[[FolderRequest], FileScenes | None], ...] = (
        _open_cityscapes,
        _open_synthia,
        _open_camvid,
        _open_two_folders,
    )
    for layout in layouts:
        found = layout(request)
        if found is not None:
            return found
    if request.labelled:
        raise DataError(
            f"{request.folder} has no label maps that are known; give the root of GTA5, Cityscapes, SYNTHIA or CamVid, "
            "or a folder with images/ and labels/"
        )
    files = open_unlabelled_folder(request.folder, cached=request.cached)
    return FileScenes(files.paths, notes=files.notes)


def _open_cityscapes(request: FolderRequest) -> FileScenes | None:
    root, split = request.folder, request.split
    if root.name in _SPLITS and root.parent.name == "leftImg8bit":
        root, split = root.parent.parent, root.name
    elif root.name == "leftImg8bit":
        root = root.parent
    if not (root / "leftImg8bit").is_dir():
        return None
    folder = _split_folder(root / "leftImg8bit", split)
    every = _list_images(folder, request)
    images = every.select([k for k, name in enumerate(every.names()) if PurePath(name).stem.endswith(_LEFT)])
    if not images:
        raise DataError(f"{folder} has no files *{_LEFT}.png; give the root of Cityscapes, above leftImg8bit")
    if not request.labelled:
        return FileScenes(images, table=CITYSCAPES)
    labels = root / "gtFine" / split
    endings = ("_gtFine_labelIds.png", "_gtFine_labelTrainIds.png")
    ids, train_ids = (
        FileList.of(labels, [_cityscapes_label(name, ending) for name in images.names()]) for ending in endings
    )
    if not any(path.exists() for path in ids) and any(path.exists() for path in train_ids):
        return FileScenes(images, train_ids, CITYSCAPES_TRAIN_IDS)
    return FileScenes(images, ids, CITYSCAPES)


def _cityscapes_label(name: str, ending: str) -> str:
    path = PurePath(name)
    return str(path.with_name(path.stem.removesuffix(_LEFT) + ending))


def _open_synthia(request: FolderRequest) -> FileScenes | None:
    images, labels = request.folder / "RGB", request.folder / "GT" / "LABELS"
    if not (images.is_dir() and (request.folder / "GT").is_dir()):
        return None
    return _pair_by_name(request, images, labels, SYNTHIA)


def _open_camvid(request: FolderRequest) -> FileScenes | None:
    folder, split = request.folder, request.split
    if folder.name in _SPLITS and folder.with_name(f"{folder.name}annot").is_dir():
        return _pair_by_name(request, folder, folder.with_name(f"{folder.name}annot"), CAMVID)
    if not any((folder / one).is_dir() and (folder / f"{one}annot").is_dir() for one in _SPLITS):
        return None
    return _pair_by_name(request, _split_folder(folder, split), folder / f"{split}annot", CAMVID)


def _open_two_folders(request: FolderRequest) -> FileScenes | None:
    images, labels = request.folder / "images", request.folder / "labels"
    if not (images.is_dir() and labels.is_dir()):
        return None
    found = _pair_by_name(request, images, labels, None)
    there = next((path for path in found.label_paths or () if path.is_file()), None)
    if there is None or not _has_cityscapes_colours(there):
        return found
    return FileScenes(found.paths, found.label_paths, CITYSCAPES, SLACK)


def _has_cityscapes_colours(label: Path) -> bool:
    colours = read_palette(label)
    if colours is None:
        return False
    known = {value: CITYSCAPES.colours[cls] for value, cls in CITYSCAPES.ids}
    return all(value < len(colours) and colours[value] == known[value] for value in _TELLING)


def _pair_by_name(request: FolderRequest, images: Path, labels: Path, table: LabelTable | None) -> FileScenes:
    """Pair images with label files of the same name, which are always PNGs."""
    found = _list_images(images, request)
    if not request.labelled:
        return FileScenes(found, table=table)
    partners = [str(PurePath(name).with_suffix(".png")) for name in found.names()]
    return FileScenes(found, FileList.of(labels, partners), table)


def _list_images(folder: Path, request: FolderRequest) -> FileList:
    images, _ = find_images(folder, cached=request.cached)
    if not images:
        raise DataError(f"{folder} has no image files; give a folder with images such as .png or .jpg")
    return images


def _split_folder(folder: Path, split: str) -> Path:
    if not (folder / split).is_dir():
        there = ", ".join(one for one in _SPLITS if (folder / one).is_dir()) or "none"
        raise DataError(f"{folder} has no folder {split!r} (it has {there}); choose another split")
    return folder / split
