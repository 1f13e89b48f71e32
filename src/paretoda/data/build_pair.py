"""Build a pair from what the user gives: open both domains, check them against each other, split and transform them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from paretoda.core.options import name_some
from paretoda.data.batching import Positions, split_positions, stratified_split
from paretoda.data.open.files import FileSamples
from paretoda.data.open.samples import open_samples
from paretoda.data.open.sources import JoinedSamples, open_sources
from paretoda.data.pair import DomainPair
from paretoda.data.prefetching import Reading
from paretoda.data.rows import Rows, make_feature_rows, make_image_rows, make_source_rows
from paretoda.data.samples import Labels, Samples
from paretoda.data.scaling import fit_scaling
from paretoda.data.settings import BatchSettings, PairSettings
from paretoda.data.transforms import IMAGENET, ImageTransform, Transform
from paretoda.errors import DataError
from paretoda.types import Progress

_SMALL = 64
_PHOTO = 224
_DEFAULTS = PairSettings()
Limited = TypeVar("Limited", bound=BatchSettings)


def make_pair(
    source: Any, target: Any, settings: PairSettings = _DEFAULTS, progress: Progress | None = None
) -> DomainPair:
    """Build the pair of a labelled source and a target whose labels, if there are any, are never read.

    Args:
        source: A labelled image folder, list file or .npz file, a tuple (x, y[, classes]) or a torch dataset; or a list
            of several of them.
        target: The same without labels.
        settings: Seed, batch size, scaling and so on.
        progress: Called while image files are checked.

    Returns:
        The pair; its `notes` tell the user what was changed or left out.

    Raises:
        DataError: The data cannot be used; the message says what to do.

    Examples:
        >>> import numpy as np
        >>> x, y, z = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2, np.ones((30, 3))
        >>> pair = make_pair((x, y, ["cat", "dog"]), z)
        >>> pair.classes, len(pair.source_train), len(pair.target_train)
        (('cat', 'dog'), 45, 27)
        >>> make_pair((x, y), z[:5])
        Traceback (most recent call last):
        ...
        paretoda.errors.DataError: the target has 5 samples; collect at least 20
    """
    open_domain = partial(
        open_samples, skip_bad=settings.skip_bad, index_cache=settings.reading.index_cache, progress=progress
    )
    labelled, unlabelled = open_source(source, partial(open_domain, labelled=True)), open_domain(target, labelled=False)
    labels = require_labels(labelled)
    check_match(labelled, unlabelled)
    check_size(unlabelled, settings.least_target)
    share, seed = settings.held_out, settings.seed_of_split
    separate = isinstance(labelled, JoinedSamples) and settings.sources == "separate"
    domain = labelled.domain if isinstance(labelled, JoinedSamples) and separate else None
    train, held = _split_sources(labels.values, domain, share, seed)
    target_train, target_held = split_positions(len(unlabelled), share, seed, "split-target")
    parts = [train] if domain is None else [train[domain[train] == number] for number in range(domain.max() + 1)]
    settings, lowered = limit_batch_size(settings, min(len(part) for part in (*parts, target_train)), "samples")
    source_rows, target_rows, transforms, said = make_rows(
        (labelled, unlabelled), (parts, target_train), settings, len(labels.classes), domain
    )
    return DomainPair(
        settings=settings,
        classes=labels.classes,
        labels=labels.values,
        source=source_rows,
        target=target_rows,
        source_train=train,
        source_held_out=held,
        target_train=target_train,
        target_held_out=target_held,
        notes=(*labelled.notes, *unlabelled.notes, *_describe_classes(labels), *lowered, *said),
        workers=count_threads(settings.reading, *list_parts(labelled), *list_parts(unlabelled)),
        domain=domain,
        transforms=tuple(transforms) if domain is not None else (),
    )


def open_source(source: Any, open_one: Callable[[Any], Samples]) -> Samples:
    """Open the source, or the sources of a list.

    Args:
        source: A source, or a list of several.
        open_one: Opens one of them with its labels.
    """
    return open_sources(source, open_one) if isinstance(source, list) else open_one(source)


def list_parts(samples: Samples) -> tuple[Samples, ...]:
    """Return the samples of each of several sources; otherwise the samples alone."""
    return samples.parts if isinstance(samples, JoinedSamples) else (samples,)


def _split_sources(
    labels: NDArray[np.int64], domain: NDArray[np.int64] | None, share: float, seed: int
) -> tuple[Positions, Positions]:
    """Return training and held-out positions, with the same share of every class of every source held out."""
    numbers = np.zeros(len(labels), np.int64) if domain is None else domain
    trained, held_out = [], []
    for number in np.unique(numbers):
        name = "the source" if domain is None else f"source {number + 1}"
        places = np.flatnonzero(numbers == number)
        stream = "split-source" if domain is None else f"split-source-{number + 1}"
        train, held = stratified_split(labels[places], share, seed, stream)
        if share > 0 and not len(held):
            raise DataError(f"every class of {name} has a single sample, so none can be held out; give more samples")
        trained.append(places[train])
        held_out.append(places[held])
    return np.concatenate(trained), np.concatenate(held_out)


def limit_batch_size(settings: Limited, largest: int, what: str) -> tuple[Limited, list[str]]:
    """Return the settings with a batch size that fits the data, and a note where it was lowered.

    Args:
        settings: Settings of the pair.
        largest: Number of training samples in the smaller domain.
        what: What the note calls the samples.
    """
    if settings.batch_size <= largest:
        return settings, []
    note = (
        f"The batch size is lowered from {settings.batch_size} to {largest}, "
        f"the number of training {what} in the smaller domain."
    )
    return replace(settings, batch_size=largest), [note]


def require_labels(source: Samples) -> Labels:
    """Return the source's labels; raise a `DataError` where there are none, or of a single class."""
    if source.labels is None:
        raise DataError("the source has no labels; give it labels, for example one sub-folder per class")
    present = np.unique(source.labels.values)
    if len(present) < 2:
        name = source.labels.classes[present[0]]
        raise DataError(f"the source has a single class, {name!r}; a classifier needs samples of at least two")
    return source.labels


def count_threads(reading: Reading, *domains: Samples) -> int:
    """Return the number of threads that read ahead; features are in memory and need none."""
    if any(samples.kind == "features" for samples in domains):
        return 0
    return reading.threads(files=all(isinstance(samples, FileSamples) for samples in domains))


def check_match(source: Samples, target: Samples) -> None:
    """Raise a `DataError` unless both domains are images, or features of the same width."""
    if source.kind != target.kind:
        raise DataError(f"the source is {source.kind}, the target is {target.kind}; give both in the same form")
    if source.kind == "features":
        ours, theirs = source.shapes()[0][0], target.shapes()[0][0]
        if ours != theirs:
            raise DataError(f"the source has {ours} features, the target has {theirs}; give both the same features")


def check_size(target: Samples, least: int) -> None:
    """Raise a `DataError` where the target has fewer than `least` samples."""
    if len(target) < least:
        raise DataError(f"the target has {len(target)} samples; collect at least {least}")


def choose_image_transform(source: Samples, target: Samples, settings: PairSettings) -> ImageTransform:
    """Return the transform that the settings ask for, completed by what the first images suggest."""
    shapes = [*source.shapes(), *target.shapes()]
    side = max(int(np.median([min(shape[:2]) for shape in samples.shapes()])) for samples in (source, target))
    size = settings.image_size or min(side, _PHOTO)
    channels = settings.channels or (3 if side > _SMALL else max(shape[2] for shape in shapes))
    mean, std = settings.normalise or (IMAGENET if channels == 3 else ((0.5,), (0.5,)))
    augment = settings.augment or ("none" if side <= _SMALL else "standard")
    return ImageTransform(size, channels, mean, std, augment)


def make_rows(
    samples: tuple[Samples, Samples],
    trained: tuple[Sequence[Positions], Positions],
    settings: PairSettings,
    classes: int,
    domain: NDArray[np.int64] | None,
) -> tuple[Rows, Rows, Sequence[Transform], list[str]]:
    """Return the rows of both domains, the transform of each source, and sentences about images.

    Args:
        samples: Samples of source and target.
        trained: Positions of the training part of each source, and of the target.
        settings: Settings of the pair.
        classes: Number of classes.
        domain: Number of the source of each source sample; None with one source.
    """
    source, target = samples
    if source.kind == "features":
        parts = [np.asarray(source.read(places)) for places in trained[0]]
        parts.append(np.asarray(target.read(trained[1])))
        *own, scale = fit_scaling(settings.scaling, *parts, components=settings.count_components(classes))
        numbers = np.zeros(len(source), np.int64) if domain is None else domain
        return make_source_rows(source, own, numbers), make_feature_rows(target, scale), own, []
    transform = choose_image_transform(source, target, settings)
    said = _describe_images("source", source.shapes(), transform) + _describe_images(
        "target", target.shapes(), transform
    )
    count = 1 if domain is None else int(domain.max()) + 1
    return make_image_rows(source, transform), make_image_rows(target, transform), [transform] * count, said


def _describe_images(domain: str, shapes: Sequence[tuple[int, ...]], transform: ImageTransform) -> list[str]:
    said = []
    sizes = sorted({f"{width}x{height}" for height, width, _ in shapes})
    if sizes != [f"{transform.size}x{transform.size}"]:
        said.append(f"The {domain}'s images ({name_some(sizes)}) are resized to {transform.size}x{transform.size}.")
    if {shape[2] for shape in shapes} != {transform.channels}:
        said.append(f"The {domain}'s images are converted to {'grey' if transform.channels == 1 else 'RGB'}.")
    return said


def _describe_classes(labels: Labels) -> list[str]:
    absent = [name for cls, name in enumerate(labels.classes) if not (labels.values == cls).any()]
    return [f"These classes have no source sample: {name_some(absent)}."] if absent else []
