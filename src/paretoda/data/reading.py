"""How data are read: by how many threads, and whether the list of a large folder's files is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass

from paretoda.data.errors import DataError

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
