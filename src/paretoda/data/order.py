"""Endless orders as pure functions of seed and position: to resume needs no state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from paretoda.core.chance import derived_seed

Places = NDArray[np.int64]


@lru_cache(maxsize=512)
def permutation(seed: int, stream: str, epoch: int, size: int) -> Places:
    """The order of one epoch, the same whenever it is asked for."""
    places = np.random.default_rng(derived_seed(seed, stream, epoch)).permutation(size)
    places.flags.writeable = False  # the cache hands out the same array again
    return places


def endless(seed: int, stream: str, size: int, start: int, count: int) -> Places:
    """Elements start..start+count of permutation after permutation of 0..size-1: every epoch has every sample once."""
    epochs = range(start // size, (start + count - 1) // size + 1)
    row = np.concatenate([permutation(seed, stream, epoch, size) for epoch in epochs])
    offset = start - epochs[0] * size
    return row[offset : offset + count]


def balanced(seed: int, stream: str, groups: Sequence[Places], start: int, count: int) -> Places:
    """Elements start..start+count of an order in which each of the groups comes once per round.

    Args:
        seed: of the run.
        stream: of the domain.
        groups: the positions of each class's samples, none of them empty.
        start: first element.
        count: how many.
    """
    turns = endless(seed, f"{stream}-classes", len(groups), start, count)
    rounds = np.arange(start, start + count) // len(groups)
    places = np.empty(count, dtype=np.int64)
    for turn in np.unique(turns):
        mine = turns == turn
        group = groups[turn]
        # In round r it is each group's r-th draw, so that the rounds of a batch are consecutive draws.
        draws = rounds[mine]
        row = endless(seed, f"{stream}-class-{turn}", len(group), int(draws[0]), len(draws))
        places[mine] = group[row]
    return places
