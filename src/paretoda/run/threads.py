"""The number of threads that a run computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paretoda.distributed.cores import free_cores


@contextmanager
def limit_threads(kind: str, wanted: int | None) -> Iterator[None]:
    """Inside, torch and NumPy use as many threads as such data can feed; afterwards as many as before.

    Feature vectors feed one thread: their matrices are small, and threads that wait for each other spin, which costs
    six times the time where another program uses the other core. Images feed the cores that are free to this process,
    but no more threads than torch has been told to use (OMP_NUM_THREADS).

    Args:
        kind: Kind of the data that the network reads, "features" or images of some sort.
        wanted: Number of threads that the user asks for; None: this rule.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (a dependency of scikit-learn)

    before = torch.get_num_threads()
    count = wanted or (1 if kind == "features" else min(before, free_cores()))
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
