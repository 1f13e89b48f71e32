"""Build a pair of scenes: open both domains, check them against each other, split and transform them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Any

import numpy as np

from paretoda.core.options import name_some
from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Positions, split_positions
from paretoda.data.build_pair import limit_batch_size
from paretoda.data.samples import spread_positions
from paretoda.data.segmentation.opening import check_classes, open_scenes
from paretoda.data.segmentation.pair import ScenePair, ScenePairSettings, SceneRows, make_scene_rows
from paretoda.data.segmentation.samples import FileScenes, SceneSamples, Size
from paretoda.data.segmentation.transforms import CONVENTIONS, SceneTransform
from paretoda.data.segmentation.translation import Translation
from paretoda.errors import DataError
from paretoda.types import IGNORE, Progress

_CITYSCAPES = re.compile(r"(?P<sequence>[^_]+_\d{6})_\d{6}_leftImg8bit\.\w+")
_FAR = 0.5
"""Whole sequences are held out where their share differs from the wanted one by less than this part of it."""
_LONGEST = 1024
_DEFAULTS = ScenePairSettings()


def sequence_name(name: str) -> str | None:
    """Return city and sequence of a frame of Cityscapes; None where the name does not tell them.

    >>> sequence_name("ulm/ulm_000001_000019_leftImg8bit.png")
    'ulm_000001'
    """
    match = _CITYSCAPES.fullmatch(PurePath(name).name)
    return match and match["sequence"]


def split_scenes(names: Sequence[str], share: float, seed: int, stream: str) -> tuple[Positions, Positions]:
    """Return training and held-out positions, both sorted; whole sequences are held out where the names tell them.

    Sequences are taken in a random order as long as they fit into the share. Where that misses the share by more than
    half, because a few sequences hold nearly all frames, single frames are held out instead.

    Args:
        names: Names of all scenes.
        share: Share of the scenes to hold out.
        seed: Seed of the run.
        stream: Name of the random stream of the domain.
    """
    found = [sequence_name(name) for name in names]
    known = [sequence for sequence in found if sequence is not None]
    if share <= 0 or len(known) < len(found) or len(set(known)) < 2:
        return split_positions(len(names), share, seed, stream)
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
        return split_positions(len(names), share, seed, stream)
    out = np.zeros(len(names), dtype=bool)
    out[held] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def make_scene_pair(
    source: Any,
    target: Any,
    settings: ScenePairSettings = _DEFAULTS,
    translation: Translation | None = None,
    progress: Progress | None = None,
) -> ScenePair:
    """Build the pair of a labelled source and a target whose labels, if there are any, are never read.

    Args:
        source: Source, as `open_scenes` takes it, with labels.
        target: Target, likewise without labels.
        settings: Seed, batch size, sizes and so on.
        translation: Gives the source's training images the appearance of the target; None leaves them as they are.
        progress: Called while files are checked.

    Returns:
        The pair; its `notes` tell the user what was changed or left out.

    Raises:
        DataError: The data cannot be used; the message says what to do.

    Examples:
        >>> import numpy as np
        >>> images, maps = np.zeros((4, 8, 8, 3), np.uint8), np.arange(4 * 64).reshape(4, 8, 8) % 2
        >>> pair = make_scene_pair((images, maps), images, ScenePairSettings(least_target=2))
        >>> pair.batch(0).source.shape, pair.batch(0).labels.shape
        (torch.Size([2, 3, 8, 8]), torch.Size([2, 8, 8]))
    """
    ours, theirs = open_domains(source, target, settings, progress)
    train, held = split_positions(len(ours), settings.held_out, settings.seed_of_split, "split-source")
    target_train, target_held = split_scenes(
        theirs.names(range(len(theirs))), settings.held_out, settings.seed_of_split, "split-target"
    )
    settings, lowered = limit_batch_size(settings, min(len(train), len(target_train)), "images")
    for_source, for_target = make_scene_transforms(theirs, settings)
    rows = make_scene_rows(ours, for_source), make_scene_rows(theirs, for_target)
    train, held = ensure_labelled_parts(rows[0], train, held)
    sizes = _describe_sizes("source", ours, for_source.size) + _describe_sizes("target", theirs, for_target.size)
    return ScenePair(
        settings=settings,
        classes=ours.classes,
        colours=ours.colours,
        source=rows[0],
        target=rows[1],
        source_train=train,
        source_held_out=held,
        target_train=target_train,
        target_held_out=target_held,
        translation=translation,
        notes=(*ours.notes, *theirs.notes, *_describe_names(ours, theirs), *lowered, *sizes),
        workers=settings.reading.threads(files=isinstance(ours, FileScenes) and isinstance(theirs, FileScenes)),
    )


def open_domains(
    source: Any, target: Any, settings: ScenePairSettings, progress: Progress | None = None
) -> tuple[SceneSamples, SceneSamples]:
    """Open both domains and check them against each other."""
    open_domain = partial(
        open_scenes, skip_bad=settings.skip_bad, index_cache=settings.reading.index_cache, progress=progress
    )
    ours = open_domain(source, labelled=True, table=settings.source_table, split=settings.source_split)
    theirs = open_domain(target, labelled=False, table=settings.target_table, split=settings.target_split)
    check_classes(ours, theirs)
    check_counts(ours, theirs, settings.least_target)
    return ours, theirs


def check_counts(source: SceneSamples, target: SceneSamples, least: int) -> None:
    """Raise a `DataError` where there are too few images, or too few classes."""
    if len(source.classes) < 2:
        raise DataError(f"the source has a single class, {source.classes[0]!r}; segmentation needs at least two")
    if len(source) < 2:
        raise DataError("the source has a single image; one more is needed, so that one can be held out")
    if len(target) < max(2, least):
        raise DataError(f"the target has {len(target)} images; collect at least {max(2, least)}")


def ensure_labelled_parts(source: SceneRows, train: Positions, held: Positions) -> tuple[Positions, Positions]:
    """Return the source's parts, each with a labelled pixel: where one has none, two images are swapped.

    Only as many label maps are read as it takes to find a label, mostly one of each part.

    Args:
        source: Scenes of the source.
        train: Positions of the training part.
        held: Positions of the held-out part; may be empty.

    Raises:
        DataError: No image has a labelled pixel, or only one where two are needed.
    """

    def labelled(places: Positions) -> Iterator[int]:
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


def make_scene_transforms(target: SceneSamples, settings: ScenePairSettings) -> tuple[SceneTransform, SceneTransform]:
    """Return the source's and the target's transform; only the source's is random."""
    size = settings.size or _own_size(target)
    convention = CONVENTIONS[settings.convention]
    source = SceneTransform(settings.source_size or size, convention, settings.flip, settings.scales, settings.crop)
    return source, SceneTransform(size, convention)


def _own_size(samples: SceneSamples) -> Size:
    # The median of a few, so that one odd image does not matter.
    sizes = sorted(samples.sizes(spread_positions(len(samples))))
    width, height = sizes[len(sizes) // 2]
    factor = min(1.0, _LONGEST / max(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))


def _describe_sizes(domain: str, samples: SceneSamples, size: Size) -> list[str]:
    seen = sorted(set(samples.sizes(spread_positions(len(samples)))))
    if seen == [size]:
        return []
    shown = name_some([f"{width}x{height}" for width, height in seen])
    note = f"The {domain}'s images ({shown}) are resized to {size[0]}x{size[1]}."
    stretched = [abs(np.log((width / height) / (size[0] / size[1]))) for width, height in seen]
    return [note[:-1] + ", which changes their proportions."] if max(stretched) > np.log(1.1) else [note]


def _describe_names(source: SceneSamples, target: SceneSamples) -> list[str]:
    pairs: Sequence[tuple[str, str]] = list(zip(source.classes, target.classes or source.classes, strict=True))
    different = [f"{ours} / {theirs}" for ours, theirs in pairs if ours != theirs]
    return [f"Some classes have other names in source / target: {name_some(different)}."] if different else []
