"""From what the user gives to a pair of scenes: opened, checked against each other, split, and given transforms."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import Any

import numpy as np

from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Places, split
from paretoda.data.labels import listed
from paretoda.data.samples import Progress, peeked
from paretoda.data.segmentation.opening import check_classes, open_scenes
from paretoda.data.segmentation.pair import ScenePair
from paretoda.data.segmentation.rows import SceneRows, scene_rows
from paretoda.data.segmentation.samples import FileScenes, SceneSamples, Size
from paretoda.data.segmentation.settings import ScenePairSettings
from paretoda.data.segmentation.transforms import CONVENTIONS, SceneTransform
from paretoda.data.segmentation.translation import Translation
from paretoda.errors import DataError
from paretoda.types import IGNORE

_CITYSCAPES = re.compile(r"(?P<sequence>[^_]+_\d{6})_\d{6}_leftImg8bit\.\w+")
_FAR = 0.5
"""Sequences are held out where their share comes closer to the wanted one than by this part of it."""


def sequence_of(name: str) -> str | None:
    """City and sequence of a frame of Cityscapes; None where the name tells nothing."""
    match = _CITYSCAPES.fullmatch(PurePath(name).name)
    return match and match["sequence"]


def split_scenes(names: Sequence[str], share: float, seed: int, stream: str) -> tuple[Places, Places]:
    """Training and held-out positions, both sorted; by whole sequences where the names tell them.

    Sequences are taken in a random order as long as they fit into the share. Where that misses it by more than half,
    because a few sequences hold nearly all frames, single frames are held out instead.

    Args:
        names: of all scenes.
        share: of the scenes to hold out.
        seed: of the run.
        stream: of the domain.
    """
    found = [sequence_of(name) for name in names]
    known = [sequence for sequence in found if sequence is not None]
    if share <= 0 or len(known) < len(found) or len(set(known)) < 2:
        return split(len(names), share, seed, stream)
    places = defaultdict(list)
    for place, sequence in enumerate(known):
        places[sequence].append(place)
    wanted = max(1, round(share * len(names)))
    groups = [places[sequence] for sequence in sorted(places)]
    held: list[int] = []
    for turn in np.random.default_rng(derive_seed(seed, stream, "sequences")).permutation(len(groups)):
        if len(held) + len(groups[turn]) <= wanted:
            held += groups[turn]
    if len(held) < (1 - _FAR) * wanted:
        return split(len(names), share, seed, stream)
    out = np.zeros(len(names), dtype=bool)
    out[held] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


_LONGEST = 1024
_DEFAULTS = ScenePairSettings()


def make_scene_pair(
    source: Any,
    target: Any,
    settings: ScenePairSettings = _DEFAULTS,
    translation: Translation | None = None,
    progress: Progress | None = None,
) -> ScenePair:
    """The pair of a labelled source and a target whose labels, if there are any, are never read.

    Args:
        source: as `open_scenes` takes it, with labels.
        target: the same without labels.
        settings: seed, batch size, sizes and so on.
        translation: gives the source's training batches the target's looks.
        progress: called while files are checked.
    """
    ours, theirs = open_both(source, target, settings, progress)
    train, held = split(len(ours), settings.held_out, settings.seed, "split-source")
    target_train, target_held = split_scenes(
        theirs.names(range(len(theirs))), settings.held_out, settings.seed, "split-target"
    )
    notes = [*ours.notes, *theirs.notes, *_about_names(ours, theirs)]
    largest = min(len(train), len(target_train))
    if settings.batch_size > largest:
        notes.append(
            f"The batch size is lowered from {settings.batch_size} to {largest}, "
            "the number of training images in the smaller domain."
        )
        settings = replace(settings, batch_size=largest)
    for_source, for_target = scene_transforms(theirs, settings)
    rows = scene_rows(ours, for_source), scene_rows(theirs, for_target)
    train, held = labelled_parts(rows[0], train, held)
    notes += _about_sizes("source", ours, for_source.size) + _about_sizes("target", theirs, for_target.size)
    parts = train, held, target_train, target_held
    workers = settings.reading.threads(files=isinstance(ours, FileScenes) and isinstance(theirs, FileScenes))
    return ScenePair(settings, ours.classes, ours.colours, *rows, *parts, translation, tuple(notes), workers)


def open_both(
    source: Any, target: Any, settings: ScenePairSettings, progress: Progress | None = None
) -> tuple[SceneSamples, SceneSamples]:
    """Both domains, checked against each other."""
    how: dict[str, Any] = {
        "skip_bad": settings.skip_bad,
        "index_cache": settings.reading.index_cache,
        "progress": progress,
    }
    ours = open_scenes(source, labelled=True, table=settings.source_table, split=settings.source_split, **how)
    theirs = open_scenes(target, labelled=False, table=settings.target_table, split=settings.target_split, **how)
    check_classes(ours, theirs)
    check_counts(ours, theirs, settings.least_target)
    return ours, theirs


def check_counts(source: SceneSamples, target: SceneSamples, least: int) -> None:
    """Raises where there are too few images, or too few classes."""
    if len(source.classes) < 2:
        raise DataError(f"the source has a single class, {source.classes[0]!r}; segmentation needs at least two")
    if len(source) < 2:
        raise DataError("the source has a single image; one more is needed, so that one can be held out")
    if len(target) < max(2, least):
        raise DataError(f"the target has {len(target)} images; collect at least {max(2, least)}")


def labelled_parts(source: SceneRows, train: Places, held: Places) -> tuple[Places, Places]:
    """The source's parts, each with a labelled pixel: where one has none, two images change places.

    Only as many label maps are read as it takes to find a label, mostly one of each part.

    Args:
        source: its scenes.
        train: positions of the training part.
        held: positions of the held-out part; may be empty.
    """

    def labelled(places: Places) -> Iterator[int]:
        return (int(place) for place in places if (source.maps(np.array([place])) != IGNORE).any())

    found = [next(labelled(part), None) for part in (train, held)]
    if found[0] is not None and (found[1] is not None or not len(held)):
        return train, held
    every = [place for part in (train, held) for place in islice(labelled(part), 2)]
    names = source.samples.names(every or [0])
    if not every:
        raise DataError(f"no pixel of the source has a label, as in {names[0]}; label some pixels with a class")
    if len(every) < 2:
        raise DataError(f"only {names[0]} of the source has labelled pixels; label one more, so that one is held out")
    rich, poor = (train, held) if found[0] is not None else (held, train)
    one, other = every[1], int(poor[0])
    swapped = (np.sort(np.where(rich == one, other, rich)), np.sort(np.where(poor == other, one, poor)))
    return swapped if rich is train else swapped[::-1]


def scene_transforms(target: SceneSamples, settings: ScenePairSettings) -> tuple[SceneTransform, SceneTransform]:
    """The source's and the target's; only the source's knows chance."""
    size = settings.size or _own_size(target)
    convention = CONVENTIONS[settings.convention]
    source = SceneTransform(settings.source_size or size, convention, settings.flip, settings.scales, settings.crop)
    return source, SceneTransform(size, convention)


def _own_size(samples: SceneSamples) -> Size:
    # The middle one of a few, so that one odd image decides nothing.
    sizes = sorted(samples.sizes(peeked(len(samples))))
    width, height = sizes[len(sizes) // 2]
    factor = min(1.0, _LONGEST / max(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))


def _about_sizes(domain: str, samples: SceneSamples, size: Size) -> list[str]:
    seen = sorted(set(samples.sizes(peeked(len(samples)))))
    if seen == [size]:
        return []
    shown = listed([f"{width}x{height}" for width, height in seen])
    note = f"The {domain}'s images ({shown}) are resized to {size[0]}x{size[1]}."
    stretched = [abs(np.log((width / height) / (size[0] / size[1]))) for width, height in seen]
    return [note[:-1] + ", which changes their proportions."] if max(stretched) > np.log(1.1) else [note]


def _about_names(source: SceneSamples, target: SceneSamples) -> list[str]:
    pairs: Sequence[tuple[str, str]] = list(zip(source.classes, target.classes or source.classes, strict=True))
    different = [f"{ours} / {theirs}" for ours, theirs in pairs if ours != theirs]
    return [f"Some classes have other names in source / target: {listed(different)}."] if different else []
