"""Reading ahead: threads prepare the next batches, in order, within a bounded buffer."""

from __future__ import annotations

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

from paretoda.distributed.cores import free_cores
from paretoda.errors import DataError

_MOST = 8
"""Largest default number of threads; with more, Python's lock slows down the reading of small images."""
_PIECE = 32
"""Rows that one thread makes at a time where a whole set is read."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Reading:
    """How data are read; it changes no batch.

    Args:
        workers: Threads that read ahead; None means one less than there are cores, for image files only.
        index_cache: Whether the list of a large folder's files is kept for the next run.

    Raises:
        DataError: The number of workers is negative.
    """

    workers: int | None = None
    index_cache: bool = True

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 0:
            raise DataError(f"there cannot be {self.workers} workers; give 0 or more")

    def threads(self, *, files: bool) -> int:
        """Return how many threads read images.

        Args:
            files: Whether the images are files. A user's own dataset, which may not be thread-safe, is read by threads
                only where the user asks for them.
        """
        return self.workers if self.workers is not None else spare_cores() if files else 0


def spare_cores() -> int:
    """Return the number of cores besides the training one, at most 8; processes of one machine share them."""
    return min(_MOST, free_cores() - 1)


def prefetch(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Generator[Result, None, None]:
    """Yield what the work makes of every item, in the items' order.

    An error is raised where its result would have come.

    Args:
        work: Pure function, called in other threads.
        items: Items, which are taken as the results are consumed.
        workers: Number of threads; at most one result more than that waits. With 0 everything runs in this thread.
    """
    if workers == 0:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    own = torch.get_num_threads()
    with ThreadPoolExecutor(workers, "paretoda-reading", initializer=_use_one_core) as pool:
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


def _use_one_core() -> None:
    # Affects this thread only: several threads share the cores already. A thread adopts the number that was set last
    # when it first asks for it, so it asks before it sets its own, as the training thread has done above.
    torch.get_num_threads()
    torch.set_num_threads(1)


def prefetch_batches(
    work: Callable[[NDArray[np.int64]], Tensor], places: NDArray[np.int64], batch_size: int, workers: int
) -> Generator[Tensor, None, None]:
    """Yield the rows of all positions in batches; threads make pieces of a batch, which bounds what waits.

    Args:
        work: Positions -> their rows; a row must not depend on the other positions.
        places: All positions, in order.
        batch_size: Rows at a time.
        workers: Number of threads.
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
