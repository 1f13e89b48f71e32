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

Positions = NDArray[np.int64]


class BatchGenerator(torch.Generator):
    """Random generator for a batch of which this process reads a share; `draw_per_sample` draws for all of the batch.

    Attributes:
        total: Number of samples in the whole batch.
        share: Positions of this process's samples in the batch.
    """

    total: int
    share: slice


def batch_generator(seed: int, count: int, processes: Processes) -> BatchGenerator:
    """Return the generator of a batch.

    Args:
        seed: Seed of the batch.
        count: Number of samples in the whole batch.
        processes: Processes that share the batch.
    """
    generator = BatchGenerator()
    generator.manual_seed(seed)
    generator.total, generator.share = count, processes.share(count)
    return generator


def draw_per_sample(
    shape: Sequence[int], axis: int, generator: torch.Generator, dtype: torch.dtype | None = None
) -> Tensor:
    """Draw uniform numbers in 0..1 whose `axis` runs over the samples at hand.

    All processes of a run draw for the whole batch and keep the numbers of their own samples, so that the numbers of a
    sample do not depend on the number of processes.

    Args:
        shape: Shape of the result.
        axis: Axis of the samples.
        generator: Source of the randomness; a `BatchGenerator` knows which samples of the batch are at hand.
        dtype: Type of the numbers.
    """
    if not isinstance(generator, BatchGenerator):
        return torch.rand(tuple(shape), generator=generator, dtype=dtype)
    total = [generator.total if place == axis else size for place, size in enumerate(shape)]
    share = generator.share
    return torch.rand(total, generator=generator, dtype=dtype).narrow(axis, share.start, share.stop - share.start)


@lru_cache(maxsize=512)
def permutation(seed: int, stream: str, epoch: int, size: int) -> Positions:
    """Return the order of one epoch, always the same for the same arguments."""
    places = np.random.default_rng(derive_seed(seed, stream, epoch)).permutation(size)
    places.flags.writeable = False  # the cache hands out the same array again
    return places


def endless_order(seed: int, stream: str, size: int, start: int, count: int) -> Positions:
    """Return elements start..start+count of permutation after permutation of 0..size-1.

    Every epoch has every sample once.

    >>> first, second = endless_order(0, "source", 4, 0, 4), endless_order(0, "source", 4, 4, 4)
    >>> sorted(first.tolist()), sorted(second.tolist())
    ([0, 1, 2, 3], [0, 1, 2, 3])
    """
    epochs = range(start // size, (start + count - 1) // size + 1)
    row = np.concatenate([permutation(seed, stream, epoch, size) for epoch in epochs])
    offset = start - epochs[0] * size
    return row[offset : offset + count]


def balanced_order(seed: int, stream: str, groups: Sequence[Positions], start: int, count: int) -> Positions:
    """Return elements start..start+count of an order in which each of the groups comes once per round.

    Args:
        seed: Seed of the run.
        stream: Name of the random stream of the domain.
        groups: Positions of each class's samples; none of them is empty.
        start: First element.
        count: Number of elements.
    """
    turns = endless_order(seed, f"{stream}-classes", len(groups), start, count)
    rounds = np.arange(start, start + count) // len(groups)
    places = np.empty(count, dtype=np.int64)
    for turn in np.unique(turns):
        mine = turns == turn
        group = groups[turn]
        # In round r each group has its r-th draw, so that the rounds of a batch are consecutive draws.
        draws = rounds[mine]
        row = endless_order(seed, f"{stream}-class-{turn}", len(group), int(draws[0]), len(draws))
        places[mine] = group[row]
    return places


def split_positions(count: int, share: float, seed: int, stream: str) -> tuple[Positions, Positions]:
    """Return training and held-out positions, both sorted; at least one is held out unless the share is 0.

    Args:
        count: Number of samples.
        share: Share of the samples to hold out.
        seed: Seed of the run.
        stream: Name of the random stream.
    """
    order = np.random.default_rng(derive_seed(seed, stream)).permutation(count)
    held = _held_out_count(count, share)
    return np.sort(order[held:]), np.sort(order[:held])


def stratified_split(labels: NDArray[np.int64], share: float, seed: int, stream: str) -> tuple[Positions, Positions]:
    """Return training and held-out positions with the same share of every class held out, as nearly as possible.

    No class leaves the training part entirely.

    Args:
        labels: Labels, shape (n,).
        share: Share of the samples to hold out, at most 0.5.
        seed: Seed of the run.
        stream: Name of the random stream.
    """
    counts = np.bincount(labels)
    wanted = counts * share
    held = np.floor(wanted).astype(np.int64)  # at most half of a class, never all of it
    missing = _held_out_count(len(labels), share) - held.sum()
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


def _held_out_count(count: int, share: float) -> int:
    return min(max(1, round(share * count)), count - 1) if share > 0 else 0
