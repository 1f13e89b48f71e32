"""Orders, splits and random generators of batches, as pure functions of seed and position: resuming needs no state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.core.seeds import derive_seed
from paretoda.distributed.collectives import Processes


class BatchGenerator(torch.Generator):
    """The generator of a batch of which this process reads a share: `per_sample` draws for all of it."""

    whole: int
    share: slice


def batch_generator(seed: int, count: int, processes: Processes) -> BatchGenerator:
    """The generator of a batch of `count` samples."""
    generator = BatchGenerator()
    generator.manual_seed(seed)
    generator.whole, generator.share = count, processes.share(count)
    return generator


def per_sample(shape: Sequence[int], axis: int, generator: torch.Generator, dtype: torch.dtype | None = None) -> Tensor:
    """Uniform numbers 0..1 of that shape, whose `axis` runs over the samples at hand.

    Args:
        shape: of the result.
        axis: of the samples.
        generator: the only source of chance; a `BatchGenerator` knows which samples of the batch are at hand.
        dtype: of the numbers.
    """
    if not isinstance(generator, BatchGenerator):
        return torch.rand(tuple(shape), generator=generator, dtype=dtype)
    whole = [generator.whole if place == axis else size for place, size in enumerate(shape)]
    share = generator.share
    return torch.rand(whole, generator=generator, dtype=dtype).narrow(axis, share.start, share.stop - share.start)


Places = NDArray[np.int64]


@lru_cache(maxsize=512)
def permutation(seed: int, stream: str, epoch: int, size: int) -> Places:
    """The order of one epoch, the same whenever it is asked for."""
    places = np.random.default_rng(derive_seed(seed, stream, epoch)).permutation(size)
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


def split(count: int, share: float, seed: int, stream: str) -> tuple[Places, Places]:
    """Training and held-out positions, both sorted; at least one is held out unless the share is 0."""
    order = np.random.default_rng(derive_seed(seed, stream)).permutation(count)
    held = _held(count, share)
    return np.sort(order[held:]), np.sort(order[:held])


def stratified_split(labels: NDArray[np.int64], share: float, seed: int, stream: str) -> tuple[Places, Places]:
    """The same share of every class is held out, as nearly as possible, and no class leaves the training part."""
    counts = np.bincount(labels)
    wanted = counts * share
    held = np.floor(wanted).astype(np.int64)  # at most half of a class, never all of it
    missing = _held(len(labels), share) - held.sum()
    for cls in np.argsort(held - wanted, kind="stable"):  # the largest remainders first
        if missing > 0 and held[cls] < counts[cls] - 1:
            held[cls] += 1
            missing -= 1
    out = np.zeros(len(labels), dtype=bool)
    for cls in np.flatnonzero(held):
        places = np.flatnonzero(labels == cls)
        order = np.random.default_rng(derive_seed(seed, stream, int(cls))).permutation(len(places))
        out[places[order[: held[cls]]]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def _held(count: int, share: float) -> int:
    return min(max(1, round(share * count)), count - 1) if share > 0 else 0
