"""The data of a task: the source with labels, the target without, and the target's labels for the table only."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.layouts import find_home, find_place
from paretoda.bench.suites import Part, Task
from paretoda.data import Samples, open_samples
from paretoda.data.drawn.digits import handwriting, handwriting_labels, printed
from paretoda.data.open.arrays import reading_npz
from paretoda.data.open.files import FileSamples
from paretoda.errors import DataError
from paretoda.io.files import whole_folder
from paretoda.io.limits import check_unpacked

EMBEDDED = ("printed", "handwritten")
DRAWN = "driving/"
"""Prefix of the names of drawn scenes: driving/GAP/SEED."""
_FILES = ("backbone_weights",)


@dataclass(frozen=True, eq=False)
class Loaded:
    """The data of a task.

    Args:
        source: The source that `paretoda.adapt` reads, with labels.
        target: The target that it reads, without labels.
        samples: The samples of the target, without labels, in the order of `adapt`.
        classes: Names of the source's classes.
        oracle_labels: Labels of `samples` as indices into `classes`, shape (n,); used for the table only.
        settings: Settings of the task, with complete file names.
    """

    source: Any
    target: Any
    samples: Samples
    classes: tuple[str, ...]
    oracle_labels: NDArray[np.int64]
    settings: dict[str, Any]


def needs_files(task: Task) -> bool:
    """Return whether a task reads anything that is not embedded."""
    paths = (task.source.path, task.target.path)
    return not all(path in EMBEDDED or path.startswith(DRAWN) for path in paths)


def load_task(task: Task, data: Path | None, work: Path, *, skip_bad: bool = False) -> Loaded:
    """Read a task's data.

    Args:
        task: The task.
        data: Folder of the suites' files; None if everything is embedded.
        work: Folder for archives that must be unpacked.
        skip_bad: Whether unreadable images are left out.
    """
    settings = {
        name: _find_path(value, data, work) if name in _FILES else value for name, value in task.settings.items()
    }
    source, target = (_open_part(part, data, work) for part in (task.source, task.target))
    labels = open_samples(source, labelled=True, skip_bad=skip_bad).labels
    assert labels is not None
    known = open_samples(target, labelled=True, classes=labels.classes, skip_bad=skip_bad)
    plain = _drop_labels(target)
    samples = open_samples(plain, labelled=False, skip_bad=skip_bad)
    return Loaded(source, plain, samples, labels.classes, _order_labels(samples, known), settings)


def _order_labels(samples: Samples, known: Samples) -> NDArray[np.int64]:
    """Return the labels of `known` in the order of `samples`, which differs for folders of images."""
    assert known.labels is not None
    if not isinstance(samples, FileSamples) or not isinstance(known, FileSamples):
        return known.labels.values
    labels = dict(zip(known.paths, known.labels.values.tolist(), strict=True))
    if stray := [path for path in samples.paths if path not in labels]:
        raise DataError(f"{stray[0]} is in no class's folder, so it cannot be counted; move it away")
    return np.array([labels[path] for path in samples.paths], dtype=np.int64)


def _drop_labels(target: Path | tuple[Any, ...] | FileSamples) -> Any:
    if isinstance(target, FileSamples):
        return replace(target, labels=None)
    return target[0] if isinstance(target, tuple) else target


def _open_part(part: Part, data: Path | None, work: Path) -> Path | tuple[Any, ...] | FileSamples:
    """Return samples, labels and classes of an .npz or an embedded domain, the images of a list, or a folder."""
    if part.path in EMBEDDED:
        x, y = printed() if part.path == "printed" else (handwriting(), handwriting_labels())
        return x, y, [str(digit) for digit in range(10)]
    if part.benchmark is not None:
        place = find_place(part.benchmark, part.path, find_home(part.benchmark, _require_folder(data)))
        return place.path if place.path.is_dir() else place.samples()
    path = Path(_find_path(part.path, data, work))
    if path.suffix != ".npz":
        return path
    arrays = read_arrays(path)
    places = np.random.default_rng(0).permutation(part.of or len(arrays["x"]))[: part.take]
    return arrays["x"][places], arrays["y"][places], arrays["classes"].tolist()


def read_arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    """Return `x`, `y` and `classes` of a suite's .npz."""
    names = ("x", "y", "classes")
    with reading_npz(path) as file:
        if missing := [name for name in names if name not in file.files]:
            raise DataError(f"{path} has no {' and no '.join(missing)}; a suite's .npz has x, y and classes")
        return {name: file[name] for name in names}


def _require_folder(data: Path | None) -> Path:
    if data is None:
        raise DataError("this suite needs files; name their folder with --data or $PARETODA_DATA")
    return data


def _find_path(name: str, data: Path | None, work: Path) -> str:
    """Return the complete path of a name below the folder of the data, or in an archive there, which is unpacked."""
    place = _require_folder(data) / name
    if place.exists():
        return str(place)
    inside = _unpack(name, _require_folder(data), work)
    if inside is None:
        raise DataError(f"{place} is missing; name the folder of the suite's files with --data")
    return str(inside)


def _unpack(name: str, data: Path, work: Path) -> Path | None:
    """Unpack `a/b/c` from `a/b.zip` or `a.zip`, once for all processes; return None if there is no such archive."""
    for parent in Path(name).parents:
        archive = data / f"{parent}.zip"
        if parent.name and archive.is_file():
            folder = work / parent
            if not folder.exists():
                with zipfile.ZipFile(archive) as file, whole_folder(folder) as fresh:
                    size = sum(info.file_size for info in file.infolist())
                    check_unpacked(size, archive.stat().st_size, str(archive))
                    file.extractall(fresh)
            inside = folder / Path(name).relative_to(parent)
            if inside.exists():
                return inside
    return None
