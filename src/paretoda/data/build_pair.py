"""Build a pair from what the user gives: open both domains, check them against each other, split and transform them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from paretoda.core.options import name_some
from paretoda.data.batching import Positions, split_positions, stratified_split
from paretoda.data.open.files import FileSamples
from paretoda.data.open.samples import open_samples
from paretoda.data.pair import DomainPair
from paretoda.data.prefetching import Reading
from paretoda.data.rows import Rows, make_feature_rows, make_image_rows
from paretoda.data.samples import Labels, Samples
from paretoda.data.scaling import fit_scaling
from paretoda.data.settings import BatchSettings, PairSettings
from paretoda.data.transforms import IMAGENET, ImageTransform
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
        source: A labelled image folder, list file or .npz file, a tuple (x, y[, classes]) or a torch dataset.
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
    labelled, unlabelled = open_domain(source, labelled=True), open_domain(target, labelled=False)
    labels = require_labels(labelled)
    check_match(labelled, unlabelled)
    check_size(unlabelled, settings.least_target)
    share, seed = settings.held_out, settings.seed_of_split
    train, held = stratified_split(labels.values, share, seed, "split-source")
    if settings.held_out > 0 and not len(held):
        raise DataError("every class of the source has a single sample, so none can be held out; give more samples")
    target_train, target_held = split_positions(len(unlabelled), share, seed, "split-target")
    settings, lowered = limit_batch_size(settings, min(len(train), len(target_train)), "samples")
    rows, said = make_rows((labelled, unlabelled), (train, target_train), settings, len(labels.classes))
    return DomainPair(
        settings=settings,
        classes=labels.classes,
        labels=labels.values,
        source=rows[0],
        target=rows[1],
        source_train=train,
        source_held_out=held,
        target_train=target_train,
        target_held_out=target_held,
        notes=(*labelled.notes, *unlabelled.notes, *_describe_classes(labels), *lowered, *said),
        workers=count_threads(settings.reading, labelled, unlabelled),
    )


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
    samples: tuple[Samples, Samples], trained: tuple[Positions, Positions], settings: PairSettings, classes: int
) -> tuple[tuple[Rows, Rows], list[str]]:
    """Return both domains as the network reads them, and notes on what was done to their images.

    Args:
        samples: Source and target.
        trained: Positions of their training parts, by which features are scaled.
        settings: Settings of the pair.
        classes: Number of classes, which the number of principal components depends on.
    """
    source, target = samples
    if source.kind == "features":
        x, z = (np.asarray(domain.read(places)) for domain, places in zip(samples, trained, strict=True))
        scale_x, scale_z = fit_scaling(settings.scaling, x, z, settings.count_components(classes))
        return (make_feature_rows(source, scale_x), make_feature_rows(target, scale_z)), []
    transform = choose_image_transform(source, target, settings)
    said = _describe_images("source", source.shapes(), transform) + _describe_images(
        "target", target.shapes(), transform
    )
    return (make_image_rows(source, transform), make_image_rows(target, transform)), said


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
