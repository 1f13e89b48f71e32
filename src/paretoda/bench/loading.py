"""The data of a suite's task: read as a user would give them, with the target's labels for the table only."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.layouts import find_home, find_place
from paretoda.core.options import name_some
from paretoda.data.drawn.digits import (
    FONTS,
    SANS,
    SERIF,
    draw_printed_digits,
    load_handwritten_digits,
    load_handwritten_labels,
)
from paretoda.data.drawn.streets import DRIVING_CLASSES, draw_driving_scenes
from paretoda.data.drawn.values import VALUE_DOMAINS, load_value_domain
from paretoda.data.open.arrays import open_npz_file
from paretoda.data.open.folders import open_labelled_folder
from paretoda.data.samples import Labels
from paretoda.errors import DataError
from paretoda.io.files import atomic_folder
from paretoda.io.limits import check_unpacked
from paretoda.objectives.parts.label_sets import UNKNOWN
from paretoda.run.task import BenchData, Task
from paretoda.tasks.suites import Part, SuiteTask
from paretoda.types import IGNORE

_PRINTED = {"printed": FONTS, "printed-sans": SANS, "printed-serif": SERIF}
EMBEDDED = (*_PRINTED, "handwritten", *VALUE_DOMAINS)
DRAWN = "driving/"
"""Prefix of the names of drawn streets: driving/GAP/SEED."""
_FILES = ("backbone_weights",)
_HEIGHT, _WIDTH = 120, 160
_CUT = 40
"""Rows that are cut off at the top or bottom of a taller drawing."""


def needs_files(task: SuiteTask) -> bool:
    """Return whether a task reads anything that is not embedded."""
    paths = [part.path for part in (*task.sources, task.target)]
    return not all(path in EMBEDDED or path.startswith(DRAWN) for path in paths)


def load_task(
    task: Task[Any, Any],
    suite_task: SuiteTask,
    data: Path | None,
    work: Path,
    *,
    skip_bad: bool = False,
    oracle: bool = False,
    seed: int = 0,
) -> BenchData:
    """Read the data of a suite's task.

    Args:
        task: Task of the runs.
        suite_task: Source, target and test data.
        data: Folder of the suites' files; None if everything is embedded.
        work: Folder for archives that must be unpacked.
        skip_bad: Whether unreadable images are left out.
        oracle: Whether the labelled target takes the place of the source.
        seed: Seed that the labelled samples of the target are drawn with.

    Raises:
        DataError: Files are missing or cannot be used.
    """
    target, few = open_part(suite_task.target, data, work), None
    if suite_task.labels:
        few, target = draw_labelled(target, suite_task.labels, seed)
    sources = [] if oracle else [open_part(part, data, work) for part in suite_task.sources]
    source = sources if len(sources) > 1 else sources[0] if sources else None
    test = None if suite_task.test is None else open_part(suite_task.test, data, work)
    return replace(task.open_benchmark(source, target, test, skip_bad=skip_bad), target_labels=few)


def draw_labelled(domain: Any, count: int, seed: int) -> tuple[Any, Any]:
    """Draw samples whose labels are given; return them and the rest of the domain.

    Args:
        domain: Arrays (x, y, classes).
        count: Number of samples of each class; fewer where a class has no more.
        seed: Seed of the choice.

    Raises:
        DataError: The domain is not given as arrays.
    """
    if not isinstance(domain, tuple):
        raise DataError("labelled target samples are drawn from arrays; take a suite of .npz files")
    x, y, classes = domain
    order = np.random.default_rng(seed).permutation(len(y))
    chosen = np.sort(np.concatenate([order[y[order] == label][:count] for label in np.unique(y)]))
    rest = np.setdiff1d(np.arange(len(y)), chosen)
    return (x[chosen], y[chosen], classes), (x[rest], y[rest], classes)


def complete_settings(
    suite_task: SuiteTask, data: Path | None, work: Path, given: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the settings of a run: those that are given, above those of the suite's task with complete file names.

    The weights that the suite names belong to its own backbone; a run with another backbone does not get them.

    Args:
        suite_task: Task of the suite.
        data: Folder of the suites' files; None if everything is embedded.
        work: Folder for archives that must be unpacked.
        given: Settings of the run, which take precedence.

    Raises:
        DataError: A file that the suite names is missing.
    """
    own = suite_task.settings
    foreign = given.get("backbone", own.get("backbone")) != own.get("backbone")
    below = {name: value for name, value in own.items() if name not in given and not (foreign and name in _FILES)}
    found = {name: _find_path(value, data, work) if name in _FILES else value for name, value in below.items()}
    return {**found, **given}


def open_part(part: Part, data: Path | None, work: Path) -> Any:
    """Return a domain as a user would give it, with the classes that the part takes; otherwise as `open_domain`."""
    found = open_domain(part, data, work)
    return found if part.classes is None else take_classes(found, part.classes, part.unknown)


def take_classes(domain: Any, classes: Sequence[str], unknown: Sequence[str] = ()) -> Any:
    """Return the samples of some classes of a domain; scenes keep all pixels, and those of other classes are ignored.

    Args:
        domain: Arrays (x, y, classes), files, or the folder of labelled images.
        classes: Names of the classes.
        unknown: Names of further classes, whose samples get the label `UNKNOWN`.

    Raises:
        DataError: The domain has no such class.
    """
    files: Any = open_labelled_folder(domain) if isinstance(domain, Path) else domain
    arrays = isinstance(files, tuple)
    if arrays and files[1].ndim > 1:
        return files[0], keep_classes(files[1], files[2], classes), list(classes)
    values, names = (files[1], files[2]) if arrays else (files.labels.values, files.labels.classes)
    place = {name: number for number, name in enumerate(classes)} | dict.fromkeys(unknown, len(classes))
    if missing := [name for name in place if name not in names]:
        raise DataError(f"the domain has no class {missing[0]!r}; it has {name_some(list(names))}")
    numbers = np.array([place.get(name, -1) for name in names], dtype=np.int64)[values]
    kept, found = np.flatnonzero(numbers >= 0), (*classes, *([UNKNOWN] if unknown else []))
    if arrays:
        return files[0][kept], numbers[kept], list(found)
    return replace(files.select(kept), labels=Labels(numbers[kept], found))


def open_domain(part: Part, data: Path | None, work: Path) -> Any:
    """Return a whole domain as a user would give it: arrays (x, y, classes), the images of a list, or a folder.

    Args:
        part: The domain.
        data: Folder of the suites' files; None if everything is embedded.
        work: Folder for archives that must be unpacked.
    """
    if part.path in EMBEDDED:
        return _load_embedded(part.path)
    if part.path.startswith(DRAWN):
        return _draw_streets(part.path, part.take or 500)
    if part.benchmark is not None:
        place = find_place(part.benchmark, part.path, find_home(part.benchmark, _require_folder(data)))
        return place.path if place.path.is_dir() else place.samples()
    paths = [Path(_find_path(name, data, work)) for name in part.path.split("+")]
    if paths[0].suffix != ".npz":
        return paths[0]
    files = [read_arrays(path) for path in paths]
    x, y = (np.concatenate([file[name] for file in files]) for name in ("x", "y"))
    classes = files[0]["classes"].tolist()
    if part.ordered:
        return x, y, classes
    places = np.random.default_rng(0).permutation(part.of or len(x))[: part.take]
    return x[places], y[places], classes


def _load_embedded(name: str) -> Any:
    """Return an embedded domain: digits with their classes, or samples with values."""
    if name in VALUE_DOMAINS:
        return load_value_domain(name)
    if name in _PRINTED:
        x, y = draw_printed_digits(fonts=_PRINTED[name])
    else:
        x, y = load_handwritten_digits(), load_handwritten_labels()
    return x, y, [str(digit) for digit in range(10)]


def keep_classes(labels: NDArray[Any], classes: Sequence[str], kept: Sequence[str]) -> NDArray[Any]:
    """Return label maps with the numbers of the kept classes, and with `IGNORE` at the pixels of all others.

    Examples:
        >>> keep_classes(np.array([[[0, 1, 2]]], dtype=np.uint8), ["sky", "road", "car"], ["car", "road"])
        array([[[255,   1,   0]]], dtype=uint8)
    """
    numbers: NDArray[Any] = np.full(256, IGNORE, dtype=np.uint8)
    for number, name in enumerate(kept):
        numbers[classes.index(name)] = number
    kept_labels: NDArray[Any] = numbers[labels]
    return kept_labels


@lru_cache(maxsize=8)
def _draw_streets(path: str, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], list[str]]:
    """Draw the streets of driving/GAP/SEED, 160x120; for driving/GAP/SEED/up or /down, with a tilted camera."""
    gap, seed, *tilt = path.removeprefix(DRAWN).split("/")
    rows = {(): slice(None), ("up",): slice(None, _HEIGHT), ("down",): slice(-_HEIGHT, None)}[tuple(tilt)]
    size = (_HEIGHT + (_CUT if tilt else 0), _WIDTH)
    x, y = draw_driving_scenes(count, seed=int(seed), gap=float(gap), size=size)
    return x[:, rows], y[:, rows], list(DRIVING_CLASSES)


def read_arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    """Return `x`, `y` and `classes` of a suite's .npz."""
    names = ("x", "y", "classes")
    with open_npz_file(path) as file:
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
    """Unpack `a/b/c` from `a/b/c.zip`, `a/b.zip` or `a.zip`, once for all processes; None if there is no archive."""
    for parent in (Path(name), *Path(name).parents):
        archive = data / f"{parent}.zip"
        if parent.name and archive.is_file():
            folder = work / parent
            if not folder.exists():
                _extract(archive, folder)
            inside = folder / Path(name).relative_to(parent)
            if inside.exists():
                return inside
    return None


def _extract(archive: Path, folder: Path) -> None:
    """Extract a whole archive into a new folder, or nothing of it."""
    try:
        with zipfile.ZipFile(archive) as file, atomic_folder(folder) as fresh:
            size = sum(info.file_size for info in file.infolist())
            check_unpacked(size, archive.stat().st_size, str(archive))
            file.extractall(fresh)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{archive} is damaged ({error}); copy it again") from error
