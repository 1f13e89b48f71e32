"""Opens a data set's folder, a list file, an .npz file, one image, or arrays as scenes."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.core.options import name_some
from paretoda.data.open.decoding import SUFFIXES, decode
from paretoda.data.open.files import FileList, drop_failures
from paretoda.data.open.lists import read_text
from paretoda.data.samples import class_names
from paretoda.data.segmentation.label_tables import (
    CITYSCAPES,
    LabelTable,
    find_table,
    make_plain_table,
    read_ids,
    read_size,
)
from paretoda.data.segmentation.layouts import SLACK, FolderRequest, find_scenes
from paretoda.data.segmentation.samples import (
    ArrayScenes,
    FileScenes,
    SceneSamples,
    check_sizes,
    make_array_scenes,
    number_names,
    open_npz_scenes,
)
from paretoda.errors import DataError
from paretoda.types import IGNORE, Progress

_IMAGE = "|".join(re.escape(suffix) for suffix in sorted(SUFFIXES))
_LINE = re.compile(rf"(?P<image>.+?(?:{_IMAGE}))(?:\s+(?P<label>\S.*))?", re.IGNORECASE)


def open_scenes(
    what: Any,
    *,
    labelled: bool,
    table: LabelTable | str | None = None,
    split: str = "train",
    skip_bad: bool = False,
    index_cache: bool = True,
    progress: Progress | None = None,
) -> SceneSamples:
    """Open the scenes behind a path, an array or a tuple (x, y[, classes]), and check their sizes and label files.

    Only headers are read, and of large sets only some, so that a damaged file may raise an error later, when it is
    decoded.

    Args:
        what: The root of GTA5, Cityscapes, SYNTHIA or CamVid, a folder with images/ and labels/, a list of lines `image
            label`, an .npz file; without labels also any folder with images, or one image.
        labelled: Whether labels are read; with False label files are not even opened.
        table: Meaning of the ids in the label files, or its name; by default the layout's, or `classes.txt`.
        split: Split of Cityscapes and CamVid; a path that ends in one has priority.
        skip_bad: Whether everything is decoded once, and what cannot be used is left out with a note.
        index_cache: Whether the list of a large folder's files is kept for the next run.
        progress: Called while files are checked.

    Returns:
        The scenes, with label maps where they are wanted.

    Raises:
        DataError: The data cannot be used; the message says what to do.
    """
    scenes = open_unchecked(what, labelled=labelled, table=table, split=split, index_cache=index_cache)
    if not isinstance(scenes, FileScenes):
        return scenes
    usable = drop_failures(
        scenes,
        partial(check_scene, scenes, thorough=skip_bad),
        ("scenes", "scenes that cannot be read"),
        skip_bad=skip_bad,
        progress=progress,
    )
    return number_classes(usable)


def open_unchecked(
    what: Any,
    *,
    labelled: bool,
    table: LabelTable | str | None = None,
    split: str = "train",
    index_cache: bool = False,
) -> ArrayScenes | FileScenes:
    """Open the scenes before their files are read; otherwise as `open_scenes`."""
    table = None if table is None else find_table(table)
    if isinstance(what, (ArrayScenes, FileScenes)):
        if labelled and not what.labelled:
            raise DataError("these scenes were opened without labels; open them with labels")
        return what if labelled else what.without_labels()
    if isinstance(what, (str, Path)):
        return _open_path(FolderRequest(Path(what).expanduser(), labelled, split, index_cache), table)
    if isinstance(what, tuple) and len(what) in (2, 3):
        return make_array_scenes(*what, table=table) if labelled else make_array_scenes(what[0], table=table)
    if isinstance(what, tuple) or labelled:
        raise DataError("label maps are missing; give a path, or arrays (x, y) or (x, y, classes)")
    return make_array_scenes(what, table=table)


def check_scene(scenes: FileScenes, place: int, *, thorough: bool) -> None:
    """Raise a `DataError` where a scene cannot be used.

    Args:
        scenes: The scenes.
        place: Position of the scene.
        thorough: Whether the files are decoded; otherwise only their headers are read.
    """
    (size,) = scenes.sizes([place])
    if scenes.label_paths is not None:
        label = scenes.label_paths[place]
        if not os.path.isfile(label):
            raise DataError(f"{scenes.paths[place]} has no label file {label}; add it, or remove the image")
        check_sizes(size, read_size(label), scenes.paths[place], label, scenes.slack)
    if thorough:
        decode(scenes.paths[place])
        if scenes.label_paths is not None:
            ids = read_ids(scenes.label_paths[place])
            if scenes.table is not None:
                scenes.table.classes_of(ids, str(scenes.label_paths[place]))


def check_classes(source: SceneSamples, other: SceneSamples) -> None:
    """Raise a `DataError` where both domains' classes are known and their numbers differ."""
    if source.classes and other.classes and len(source.classes) != len(other.classes):
        raise DataError(
            f"the source has {len(source.classes)} classes ({name_some(source.classes)}), the target has "
            f"{len(other.classes)} ({name_some(other.classes)}); give the target as a list of images, or read "
            "the source's labels as the target's classes with --source-table NAME (`paretoda list tables`)"
        )


def _open_path(request: FolderRequest, table: LabelTable | None) -> ArrayScenes | FileScenes:
    path, labelled = request.folder, request.labelled
    if path.is_dir():
        return _set_table(find_scenes(request), table, path)
    if not path.is_file():
        raise DataError(f"{path} does not exist; give a data set's folder, an .npz file or a list of images and labels")
    if path.suffix.lower() == ".npz":
        return open_npz_scenes(path, labelled=labelled, table=table)
    if path.suffix.lower() in SUFFIXES:
        if labelled:
            raise DataError(f"{path} is a single image without a label; give a folder with images/ and labels/")
        return FileScenes(FileList.of(path.parent, [path.name]), table=table)
    return _set_table(_open_list(path, labelled), table, path.parent)


def _set_table(scenes: FileScenes, table: LabelTable | None, folder: Path) -> FileScenes:
    file = folder / "classes.txt"
    if table is None and scenes.table is None and file.is_file():
        names = [line.strip() for line in read_text(file).splitlines() if line.strip()]
        if not names:
            raise DataError(f"{file} is empty; write the name of one class on each line")
        table = make_plain_table(class_names(np.asarray(names), str(file)))
    if table is None:
        return scenes
    return replace(scenes, table=table, slack=SLACK if table is CITYSCAPES else scenes.slack)


def _open_list(file: Path, labelled: bool) -> FileScenes:
    lines = [(number, line.strip()) for number, line in enumerate(read_text(file).splitlines(), 1) if line.strip()]
    pairs = [(number, *_split_line(line, number, file)) for number, line in lines]
    if not pairs:
        raise DataError(f"{file} lists no images; write one `image label` per line")
    above, first = file.absolute().parent.parent, pairs[0][1]
    above_it = not os.path.exists(file.parent / first) and os.path.isfile(above / first)
    root = above if above_it else file.parent
    images = FileList.of(root, [image for _, image, _ in pairs])
    if not labelled:
        return FileScenes(images)
    for number, _, label in pairs:
        if label is None:
            raise DataError(f"line {number} of {file} has no label file; write `image label` on every line")
    return FileScenes(images, FileList.of(root, [label for _, _, label in pairs if label is not None]))


def _split_line(line: str, number: int, file: Path) -> tuple[str, str | None]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise DataError(f"line {number} of {file} names no image file; write one `image label` per line")
    return match["image"], match["label"]


def number_classes(scenes: FileScenes) -> FileScenes:
    """Return the scenes with a table; where nothing tells the classes, all labels are read to number them.

    One wrong pixel can make many classes: where numbers below the largest never occur, a note says which file has it.
    """
    if scenes.table is not None or scenes.label_paths is None:
        return scenes
    present = [set(np.unique(read_ids(path)).tolist()) - {IGNORE} for path in scenes.label_paths]
    most = max(max(ids, default=0) for ids in present)
    note = f"Nothing names the classes, so they are numbered 0..{most}; write them into classes.txt."
    if absent := set(range(most)).difference(*present):
        file = next(path for path, ids in zip(scenes.label_paths, present, strict=True) if most in ids)
        note += f" {len(absent)} of them have no pixel; see whether the label {most} in {file} is a mistake."
    return replace(scenes, table=make_plain_table(number_names(1 + most)), notes=(*scenes.notes, note))
