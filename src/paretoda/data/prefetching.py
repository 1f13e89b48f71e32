"""Reading ahead: threads prepare the next batches, in order, within a bounded buffer."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.errors import DataError

_MOST = 8
"""Threads by default: beyond these Python's lock is in the way of small images."""


@dataclass(frozen=True)
class Reading:
    """How data are read, which changes no batch.

    Args:
        workers: threads that read ahead; None: one less than there are cores, for image files alone.
        index_cache: keep the list of a large folder's files for the next time.
    """

    workers: int | None = None
    index_cache: bool = True

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 0:
            raise DataError(f"there cannot be {self.workers} workers; give 0 or more")

    def threads(self, *, files: bool) -> int:
        """How many threads read images; those of a user's own dataset, which may not bear it, only where asked for."""
        return self.workers if self.workers is not None else spare_cores() if files else 0


def spare_cores() -> int:
    """Cores of this process beside the one that trains, at most eight; processes of one machine share them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    here = os.environ.get("LOCAL_WORLD_SIZE", "1")  # set by torchrun
    return min(_MOST, max(0, cores // max(1, int(here) if here.isdecimal() else 1) - 1))


_PIECE = 32
"""Rows that one thread makes at a time where all of a set are wanted."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetch(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Generator[Result, None, None]:
    """What the work makes of every item, in the items' order; an error is raised where its result would have come.

    Args:
        work: a pure function, called in other threads.
        items: asked for as the results are taken.
        workers: threads; never more than one result above their number waits. 0: everything happens here.
    """
    if workers == 0:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    own = torch.get_num_threads()
    with ThreadPoolExecutor(workers, "paretoda-reading", initializer=_one_core) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            torch.set_num_threads(own)


def _one_core() -> None:
    # For this thread alone: several of them share the cores already. A thread takes over the number that was set last,
    # by whomever, when it first asks for it: so it asks before, as who trains has done above.
    torch.get_num_threads()
    torch.set_num_threads(1)


def prefetch_batches(
    work: Callable[[NDArray[np.int64]], Tensor], places: NDArray[np.int64], batch_size: int, workers: int
) -> Generator[Tensor, None, None]:
    """The rows of all places, `batch_size` at a time; threads make pieces of a batch, which bounds what waits.

    Args:
        work: positions -> their rows, each whatever the others are.
        places: all positions, in order.
        batch_size: rows at a time.
        workers: threads.
    """
    starts = range(0, len(places), batch_size)
    if workers == 0:
        yield from (work(places[start : start + batch_size]) for start in starts)
        return
    batches = [places[start : start + batch_size] for start in starts]
    pieces = (batch[start : start + _PIECE] for batch in batches for start in range(0, len(batch), _PIECE))
    with closing(prefetch(work, pieces, workers)) as made:
        for batch in batches:
            yield torch.cat(list(islice(made, -(-len(batch) // _PIECE))))
