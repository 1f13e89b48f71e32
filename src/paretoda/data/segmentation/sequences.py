"""Splits that keep a drive's frames together: neighbouring frames are nearly the same image."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from paretoda.core.chance import derived_seed
from paretoda.data.order import Places
from paretoda.data.splits import split

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
    for turn in np.random.default_rng(derived_seed(seed, stream, "sequences")).permutation(len(groups)):
        if len(held) + len(groups[turn]) <= wanted:
            held += groups[turn]
    if len(held) < (1 - _FAR) * wanted:
        return split(len(names), share, seed, stream)
    out = np.zeros(len(names), dtype=bool)
    out[held] = True
    return np.flatnonzero(~out), np.flatnonzero(out)
