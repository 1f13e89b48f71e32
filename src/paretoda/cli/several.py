"""Who speaks when torchrun has started several processes: the first, and others only where it cannot."""

from __future__ import annotations

import os
import signal
import sys

LOST = "paretoda.distributed.collectives.LostProcessError"
_PATIENCE = 10.0
"""Seconds that the first process has to say the same, where an error comes before the processes have met."""


def rank() -> int:
    """Of this process, 0 where it is alone."""
    return int(os.environ.get("RANK", "0")) if several() else 0


def several() -> bool:
    """Whether torchrun has started more than one."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def speaks(error: BaseException) -> bool:
    """Whether this process tells the user of its error; if not, the first process has had the time to do so."""
    if not rank():
        return True
    lost = getattr(error, "speaks", None)
    if lost is not None:
        return bool(lost)
    joining = sys.modules.get("paretoda.distributed.process_group")
    if joining is not None and joining.is_joined():
        joining.wait_for_report()
        return False
    # torchrun ends everybody once the first process has left.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    return signal.sigtimedwait({signal.SIGTERM}, _PATIENCE) is None


def has_spoken() -> None:
    """The user knows: the other processes may end."""
    joining = sys.modules.get("paretoda.distributed.process_group")
    if joining is not None:
        joining.mark_as_reported()
