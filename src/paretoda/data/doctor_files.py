"""The doctor on image files: unreadable ones, mixed sizes and modes, labels that a target brings along."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal

from paretoda.data.arrays import ArraySamples
from paretoda.data.datasets import DatasetSamples
from paretoda.data.decoding import SUFFIXES, shape_of
from paretoda.data.errors import DataError
from paretoda.data.files import FileSamples, unreadable
from paretoda.data.findings import Finding
from paretoda.data.folders import find_images, visible_folders
from paretoda.data.labels import listed
from paretoda.data.lists import read_text, split_line
from paretoda.data.npz import reading_npz
from paretoda.data.samples import Progress

Domain = Literal["source", "target"]

_TINY = 8


def readable(samples: FileSamples, progress: Progress | None) -> tuple[FileSamples | None, dict[int, DataError]]:
    """The samples that can be decoded, None where none can, and why the others cannot."""
    bad = unreadable(samples.paths, range(len(samples)), thorough=True, progress=progress)
    keep = [place for place in range(len(samples)) if place not in bad]
    return (samples.kept(keep) if keep else None), bad


def about_files(domain: Domain, samples: FileSamples, bad: dict[int, DataError], skipped: bool) -> list[Finding]:
    """How many files cannot be read, and the first names."""
    if not bad:
        return []
    names = listed(samples.names(list(bad)))
    text = f"{len(bad)} of {len(samples)} image files cannot be read ({names}); repair or delete them, or use skip_bad."
    return [Finding("warning" if skipped and len(bad) < len(samples) else "error", domain, text)]


def about_images(domain: Domain, samples: ArraySamples | DatasetSamples | FileSamples) -> list[Finding]:
    """Sizes and colours, where they are mixed."""
    shapes = [shape_of(path) for path in samples.paths] if isinstance(samples, FileSamples) else samples.shapes()
    sizes = Counter(f"{width}x{height}" for height, width, _ in shapes)
    found = []
    if len(sizes) > 1:
        common = listed([f"{size} ({count})" for size, count in sizes.most_common()])
        text = f"The images have {len(sizes)} sizes: {common}; all are resized to one square."
        found.append(Finding("info", domain, text))
    if len({shape[2] for shape in shapes}) > 1:
        grey = sum(shape[2] == 1 for shape in shapes)
        text = f"{grey} of {len(shapes)} images are grey and the others coloured; all are converted alike."
        found.append(Finding("info", domain, text))
    tiny = sum(min(shape[:2]) < _TINY for shape in shapes)
    if tiny:
        text = f"{tiny} of {len(shapes)} images have a side of less than {_TINY} pixels; check that they are no icons."
        found.append(Finding("warning", domain, text))
    return found


def hidden_labels(target: Any) -> bool:
    """Whether the target brings labels along; only that they exist is looked at, never what they say."""
    if isinstance(target, tuple):
        return len(target) > 1 and target[1] is not None
    if not isinstance(target, (str, Path)):
        return False
    path = Path(target).expanduser()
    if path.is_dir():
        return len([sub for sub in visible_folders(path) if find_images(sub)[0]]) > 1
    if path.is_file() and path.suffix.lower() == ".npz":
        try:
            with reading_npz(path) as file:
                return "y" in file.files
        except DataError:  # opening it says what is wrong
            return False
    return path.is_file() and path.suffix.lower() not in SUFFIXES and _list_has_labels(path)


def _list_has_labels(file: Path) -> bool:
    try:
        lines = read_text(file).splitlines()
    except DataError:
        return False
    return any(split_line(line, file.parent)[1] is not None for line in lines if line.strip())
