"""List files with one `path label` per line."""

from __future__ import annotations

import os
from pathlib import Path

from paretoda.data.open.files import FileList, FileSamples
from paretoda.data.open.folders import is_image
from paretoda.data.samples import labels_from_names
from paretoda.errors import DataError


def open_list(file: Path, *, labelled: bool, root: Path | None = None) -> FileSamples:
    """Open the listed images; their labels are dropped unless wanted.

    Args:
        file: File with one `path label` per line.
        labelled: Whether labels are wanted; a line without a label is then an error.
        root: Folder that the paths start from; by default the list's own folder, or the one above it where the first
            image is there, as with image_list/amazon.txt beside amazon/.

    Raises:
        DataError: The file is no list, lists nothing, or lacks a label.
    """
    lines = read_text(file).splitlines()
    root = _find_root(file, lines) if root is None else root
    shown: list[str] = []
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        path, label = split_line(line, root)
        shown.append(path)
        if labelled:
            if label is None:
                raise DataError(f"line {number} of {file} has no label; write `path label` on every line")
            names.append(label)
    if not shown:
        raise DataError(f"{file} lists no images; write one `path label` per line")
    labels = labels_from_names(names) if labelled else None
    return FileSamples(FileList.of(root, shown), labels)


def _find_root(file: Path, lines: list[str]) -> Path:
    first = next((line for line in lines if line.strip()), "")
    above = file.absolute().parent.parent
    # os.path, because Path.exists raises for a path that is too long for the file system.
    inside = any(os.path.exists(file.parent / path) for path in (split_line(first, file.parent)[0], first.strip()))
    return above if not inside and os.path.isfile(above / split_line(first, above)[0]) else file.parent


def split_line(line: str, root: Path) -> tuple[str, str | None]:
    """Return path and label, separated by a tab or by the last space unless that space belongs to a file's name."""
    line = line.strip()
    if "\t" in line:
        path, _, label = line.rpartition("\t")
        return path.strip(), label.strip()
    path, _, label = line.rpartition(" ")
    path = path.rstrip()
    if not path or is_image(line):
        return line, None
    if not is_image(path) and os.path.isfile(root / line):
        return line, None
    return path, label


def read_text(file: Path) -> str:
    """Return the text of a file; raise a `DataError` where it is no text, and so no list."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(f"{file} is not a data set; give an image folder, an .npz file or a list of `path label` lines")
    return text
