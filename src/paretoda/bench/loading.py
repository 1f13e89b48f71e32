"""A task's data: the source with labels, the target without, and the target's labels for the table alone."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.layouts import home_of, place_of
from paretoda.bench.suites import Part, Task
from paretoda.data import Samples, open_samples
from paretoda.data.drawn.digits import draw_printed_digits, load_handwritten_digits, load_handwritten_labels
from paretoda.data.open.arrays import open_npz_file
from paretoda.data.open.files import FileSamples
from paretoda.errors import DataError
from paretoda.io.files import atomic_folder
from paretoda.io.limits import check_unpacked

EMBEDDED = ("printed", "handwritten")
DRAWN = "driving/"
"""How the names of drawn scenes begin: driving/GAP/SEED."""
_FILES = ("backbone_weights",)


@dataclass(frozen=True, eq=False)
class Loaded:
    """The data of a task.

    Args:
        source: what `paretoda.adapt` reads, with labels.
        target: what it reads, without labels.
        samples: the target's, without labels, in the order that `adapt` sees them in.
        classes: names of the source's classes.
        oracle_labels: of `samples`, as places in `classes`; for the table alone.
        settings: that the task asks for, file names complete.
    """

    source: Any
    target: Any
    samples: Samples
    classes: tuple[str, ...]
    oracle_labels: NDArray[np.int64]
    settings: dict[str, Any]


def needs_files(task: Task) -> bool:
    """Whether a task reads anything that is not embedded."""
    paths = (task.source.path, task.target.path)
    return not all(path in EMBEDDED or path.startswith(DRAWN) for path in paths)


def load(task: Task, data: Path | None, work: Path, *, skip_bad: bool = False) -> Loaded:
    """Read a task's data.

    Args:
        task: which.
        data: folder of the suites' files; None where everything is embedded.
        work: folder for archives that must be unpacked.
        skip_bad: leave unreadable images out.
    """
    settings = {name: _found(value, data, work) if name in _FILES else value for name, value in task.settings.items()}
    source, target = (_find(part, data, work) for part in (task.source, task.target))
    labels = open_samples(source, labelled=True, skip_bad=skip_bad).labels
    assert labels is not None
    known = open_samples(target, labelled=True, classes=labels.classes, skip_bad=skip_bad)
    plain = _without_labels(target)
    samples = open_samples(plain, labelled=False, skip_bad=skip_bad)
    return Loaded(source, plain, samples, labels.classes, _oracle_labels(samples, known), settings)


def _oracle_labels(samples: Samples, known: Samples) -> NDArray[np.int64]:
    """The labels of `known` in the order of `samples`: without labels, a folder's images have another order."""
    assert known.labels is not None
    if not isinstance(samples, FileSamples) or not isinstance(known, FileSamples):
        return known.labels.values
    labels = dict(zip(known.paths, known.labels.values.tolist(), strict=True))
    if stray := [path for path in samples.paths if path not in labels]:
        raise DataError(f"{stray[0]} is in no class's folder, so it cannot be counted; move it away")
    return np.array([labels[path] for path in samples.paths], dtype=np.int64)


def _without_labels(target: Path | tuple[Any, ...] | FileSamples) -> Any:
    if isinstance(target, FileSamples):
        return replace(target, labels=None)
    return target[0] if isinstance(target, tuple) else target


def _find(part: Part, data: Path | None, work: Path) -> Path | tuple[Any, ...] | FileSamples:
    """The samples, labels and classes of an .npz or of an embedded domain; the images of a list; a folder's path."""
    if part.path in EMBEDDED:
        x, y = (
            draw_printed_digits() if part.path == "printed" else (load_handwritten_digits(), load_handwritten_labels())
        )
        return x, y, [str(digit) for digit in range(10)]
    if part.benchmark is not None:
        place = place_of(part.benchmark, part.path, home_of(part.benchmark, _given(data)))
        return place.path if place.path.is_dir() else place.samples()
    path = Path(_found(part.path, data, work))
    if path.suffix != ".npz":
        return path
    arrays = read_arrays(path)
    places = np.random.default_rng(0).permutation(part.of or len(arrays["x"]))[: part.take]
    return arrays["x"][places], arrays["y"][places], arrays["classes"].tolist()


def read_arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    """`x`, `y` and `classes` of a suite's .npz."""
    names = ("x", "y", "classes")
    with open_npz_file(path) as file:
        if missing := [name for name in names if name not in file.files]:
            raise DataError(f"{path} has no {' and no '.join(missing)}; a suite's .npz has x, y and classes")
        return {name: file[name] for name in names}


def _given(data: Path | None) -> Path:
    if data is None:
        raise DataError("this suite needs files; name their folder with --data or $PARETODA_DATA")
    return data


def _found(name: str, data: Path | None, work: Path) -> str:
    """The complete path of what is below the data's folder, or in an archive there, which is unpacked."""
    place = _given(data) / name
    if place.exists():
        return str(place)
    inside = _unpacked(name, _given(data), work)
    if inside is None:
        raise DataError(f"{place} is missing; name the folder of the suite's files with --data")
    return str(inside)


def _unpacked(name: str, data: Path, work: Path) -> Path | None:
    """`a/b/c` from `a/b.zip` or `a.zip`, unpacked once, whoever comes first."""
    for parent in Path(name).parents:
        archive = data / f"{parent}.zip"
        if parent.name and archive.is_file():
            folder = work / parent
            if not folder.exists():
                with zipfile.ZipFile(archive) as file, atomic_folder(folder) as fresh:
                    size = sum(info.file_size for info in file.infolist())
                    check_unpacked(size, archive.stat().st_size, str(archive))
                    file.extractall(fresh)
            inside = folder / Path(name).relative_to(parent)
            if inside.exists():
                return inside
    return None
