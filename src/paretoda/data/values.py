"""Pairs of domains for regression: a source with a number for each sample, standardised by its training part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paretoda.data.batching import split_positions
from paretoda.data.build_pair import check_match, check_size, count_threads, limit_batch_size, make_rows
from paretoda.data.open.arrays import ArraySamples, check_finite, make_array_samples, open_npz_file, to_array
from paretoda.data.open.datasets import DatasetSamples
from paretoda.data.open.files import FileSamples, check_samples
from paretoda.data.open.samples import describe_origin, open_samples, open_unchecked
from paretoda.data.pair import DomainPair
from paretoda.data.samples import Samples
from paretoda.data.settings import PairSettings
from paretoda.errors import DataError
from paretoda.types import Progress

Values: TypeAlias = NDArray[np.float64]
"""One number for each sample, shape (n,)."""
Opened: TypeAlias = ArraySamples | DatasetSamples | FileSamples
VALUE = "value"
"""Name of what a regression predicts, in the place of names of classes."""
_LEAST_SOURCE = 4
_DEFAULTS = PairSettings()


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuePair(DomainPair):
    """A pair of domains for regression, whose labels are standardised values.

    Args:
        mean: Mean of the values in the source's training part.
        deviation: Their standard deviation.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> x, y, z = rng.normal(size=(60, 4)), rng.normal(100, 10, size=60), rng.normal(size=(40, 4))
        >>> pair = make_value_pair((x, y), z, PairSettings(batch_size=8))
        >>> pair.batch(0).labels.dtype, bool(abs(pair.labels_of("source").mean()) < 1e-6)
        (torch.float32, True)
        >>> bool(abs(pair.mean + pair.deviation * pair.labels[0] - y[0]) < 1e-4)
        True
    """

    mean: float
    deviation: float


def open_values(
    what: Any, *, skip_bad: bool = False, index_cache: bool = True, progress: Progress | None = None
) -> tuple[Samples, Values]:
    """Open and check samples with a number each.

    Args:
        what: An .npz file with x and y, a list file of `path value` lines, or a tuple (x, y).
        skip_bad: Whether unreadable images are left out, with a note, instead of raising an error.
        index_cache: Whether the list of a large folder's files is kept for the next run.
        progress: Called while image files are checked.

    Returns:
        The samples without labels, and their values.

    Raises:
        DataError: The data cannot be used; the message says what to do.

    Examples:
        >>> samples, values = open_values((np.eye(3), [0.5, 1.5, -2.0]))
        >>> len(samples), values.tolist()
        (3, [0.5, 1.5, -2.0])
    """
    samples, values = open_unchecked_values(what, index_cache=index_cache)
    if isinstance(samples, FileSamples):
        samples = check_samples(samples, skip_bad=skip_bad, progress=progress)
        values = _read_names(samples, describe_origin(what))
    if isinstance(samples, ArraySamples) and samples.kind == "features":
        check_finite(samples.x, describe_origin(what))
    return replace(samples, labels=None), values


def open_unchecked_values(what: Any, *, index_cache: bool = False) -> tuple[Opened, Values]:
    """Open samples and values before files are read and features are checked for NaN; otherwise as `open_values`."""
    origin = describe_origin(what)
    if isinstance(what, tuple):
        if len(what) != 2:
            raise DataError(f"a tuple of {len(what)} is no source of values; give (x, y)")
        return _join_arrays(what[0], what[1], origin)
    if isinstance(what, (str, Path)) and Path(what).suffix.lower() == ".npz" and Path(what).expanduser().is_file():
        with open_npz_file(Path(what).expanduser()) as file:
            if "x" in file.files and "y" not in file.files:
                raise DataError(f"{what} has no values; save one number per sample as `y`")
            if "x" in file.files:
                return _join_arrays(file["x"], file["y"], origin)
    if not isinstance(what, (str, Path, FileSamples)):
        raise DataError(
            f"a {type(what).__name__} is no source of values; give arrays (x, y), an .npz file or a list of "
            "`path value` lines"
        )
    samples = open_unchecked(what, labelled=True, index_cache=index_cache)
    return samples, _read_names(samples, origin)


def _join_arrays(x: Any, y: Any, origin: str) -> tuple[ArraySamples, Values]:
    samples = make_array_samples(x, origin=origin)
    values = parse_values(y, origin)
    if len(values) != len(samples):
        raise DataError(f"{origin} has {len(samples)} samples but {len(values)} values; give one value per sample")
    return samples, values


def parse_values(y: Any, origin: str) -> Values:
    """Return one finite float64 number for each sample.

    Args:
        y: Numbers, shape (n,) or (n, 1).
        origin: Name of the data in error messages.

    Raises:
        DataError: They are no finite numbers, or several for each sample.
    """
    array = to_array(y, origin)
    if array.dtype.kind not in "iuf":
        raise DataError(f"the values of {origin} are {array.dtype} instead of numbers; save one number per sample")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"the values of {origin} have the shape {array.shape}; give one number per sample, and train a run for each"
        )
    values = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        what = "NaN" if np.isnan(values[bad[0]]) else "infinite"
        raise DataError(
            f"{origin}: the value in row {bad[0]} is {what} ({len(bad)} of {len(values)} are); fill in or remove them"
        )
    return values


def _read_names(samples: Opened, origin: str) -> Values:
    """Return the numbers that the labels of listed files, or the names of their folders, are."""
    if samples.labels is None:
        raise DataError(f"{origin} has no values; write `path value` on every line")
    numbers = []
    for name in samples.labels.classes:
        try:
            numbers.append(float(name))
        except ValueError as error:
            raise DataError(
                f"the label {name!r} of {origin} is no number; write `path value` on every line, or leave out "
                "--task regression"
            ) from error
    return parse_values(np.array(numbers, dtype=np.float64)[samples.labels.values], origin)


def check_values(values: Values, least: int = _LEAST_SOURCE) -> None:
    """Raise a `DataError` where there are too few values, or all are the same."""
    if len(values) < least:
        raise DataError(f"the source has {len(values)} samples; collect at least {_LEAST_SOURCE}")
    if np.ptp(values) == 0:
        raise DataError(f"all samples of the source have the value {values[0]:g}, so there is nothing to predict")


def make_value_pair(
    source: Any, target: Any, settings: PairSettings = _DEFAULTS, progress: Progress | None = None
) -> ValuePair:
    """Build the pair of a source with values and a target whose values, if there are any, are never read.

    Args:
        source: Source, as for `open_values`.
        target: Target, as for `make_pair`.
        settings: Seed, batch size, scaling and so on.
        progress: Called while image files are checked.

    Raises:
        DataError: The data cannot be used; the message says what to do.

    Examples:
        >>> x, z = np.random.default_rng(0).normal(size=(2, 50, 3))
        >>> make_value_pair((x, np.ones(50)), z)
        Traceback (most recent call last):
        ...
        paretoda.errors.DataError: all samples of the source have the value 1, so there is nothing to predict
    """
    options: dict[str, Any] = {"skip_bad": settings.skip_bad, "index_cache": settings.reading.index_cache}
    valued, values = open_values(source, **options, progress=progress)
    unlabelled = open_samples(target, labelled=False, **options, progress=progress)
    check_values(values)
    check_match(valued, unlabelled)
    check_size(unlabelled, settings.least_target)
    share, seed = settings.held_out, settings.seed_of_split
    train, held = split_positions(len(valued), share, seed, "split-source")
    target_train, target_held = split_positions(len(unlabelled), share, seed, "split-target")
    check_values(values[train], least=2)
    settings, lowered = limit_batch_size(settings, min(len(train), len(target_train)), "samples")
    source_rows, target_rows, _, said = make_rows((valued, unlabelled), ([train], target_train), settings, 1, None)
    mean, deviation = float(values[train].mean()), float(values[train].std())
    return ValuePair(
        settings=settings,
        classes=(VALUE,),
        labels=((values - mean) / deviation).astype(np.float32),
        mean=mean,
        deviation=deviation,
        source=source_rows,
        target=target_rows,
        source_train=train,
        source_held_out=held,
        target_train=target_train,
        target_held_out=target_held,
        notes=(*valued.notes, *unlabelled.notes, *lowered, *said),
        workers=count_threads(settings.reading, valued, unlabelled),
    )
