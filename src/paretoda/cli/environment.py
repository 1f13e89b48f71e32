"""What the command line sets for its process and its children before torch is imported."""

from __future__ import annotations

import ctypes
import os

_MALLOC = {"MALLOC_TRIM_THRESHOLD_": (-1, 2**30), "MALLOC_MMAP_THRESHOLD_": (-3, 2**29)}
"""Variable that children read at their start -> number of the option in malloc.h, and bytes."""


def prepare_environment() -> None:
    """Make waiting threads sleep, and let malloc keep the memory of freed tensors; what the user has set stays.

    By default glibc returns the memory of every large tensor to the system when it is freed, and the next step gets it
    back page by page: 40 % of the time of training on images (`benchmarks/image_steps.py`). Arrays of 512 MiB and more
    are still returned, and so is everything above 1 GiB that is free at the end of the heap.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # OpenMP reads it when torch is imported
    if any(name in os.environ for name in _MALLOC):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:  # other systems have other allocators
        return
    for name, (option, size) in _MALLOC.items():
        os.environ[name] = str(size)
        mallopt(option, size)
