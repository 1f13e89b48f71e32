"""The cores that a process may use: those of its affinity and of its control group, shared with its siblings."""

from __future__ import annotations

import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def free_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    These are the cores of its affinity mask, no more than the quota of its control group (the limit of a container),
    divided by the number of processes that torchrun has started on this machine.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    here = os.environ.get("LOCAL_WORLD_SIZE", "1")  # set by torchrun
    processes = max(1, int(here) if here.isdecimal() else 1)
    return max(1, int(min(cores, read_quota(_GROUPS)) // processes))


def has_idle_core() -> bool:
    """Whether fewer tasks are running on this machine than this process has cores."""
    try:
        running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return False
    return running < free_cores()


def read_quota(groups: Path) -> float:
    """Return the cores that the control group of this process grants, in either version; infinity without a limit.

    Args:
        groups: Folder where the control groups are mounted.
    """
    try:
        quota, period = (groups / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota, period = (
                (groups / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="ascii").strip()
                for name in ("quota", "period")
            )
        except OSError:
            return float("inf")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else float("inf")
