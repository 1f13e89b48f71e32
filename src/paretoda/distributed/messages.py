"""Messages that the processes of a run leave for each other, so that the others know why one has ended."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from torch.distributed.distributed_c10d import PrefixStore

from paretoda.distributed.collectives import Processes


def process_name(rank: int, size: int) -> str:
    """Name of a process in messages."""
    return f"process {rank} of 0..{size - 1}"


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages in torch's store, which outlives each of the processes.

    Args:
        store: Store of this run only.
        processes: Processes of the run.
    """

    store: PrefixStore
    processes: Processes

    def put(self, key: str, text: str) -> None:
        """Store a text under this key."""
        with suppress(RuntimeError):  # the store itself may have been lost
            self.store.set(key, text)

    def wait_for(self, key: str, patience: timedelta) -> str | None:
        """Return the text under this key as soon as it is there; None where it does not come in time."""
        try:
            self.store.wait([key], patience)
            return bytes(self.store.get(key)).decode()
        except RuntimeError:
            return None

    def leave_reason(self, reason: str) -> None:
        """Store the reason for which this process ends."""
        self.put(f"reason-{self.processes.rank}", reason)

    def explain_loss(self) -> tuple[str, bool]:
        """Return what is known about the lost processes, and whether this process is the one to report it."""
        rank, size = self.processes.rank, self.processes.size
        self.put(f"here-{rank}", "")
        others = [other for other in range(size) if other != rank]
        brief = timedelta(milliseconds=200)
        reasons = {o: reason for o in others if (reason := self.wait_for(f"reason-{o}", brief)) is not None}
        silent = [o for o in others if o not in reasons and self.wait_for(f"here-{o}", timedelta(seconds=1)) is None]
        first = not any(other < rank for other in others if other not in silent)
        if reasons:
            lost = min(reasons)
            return f"{process_name(lost, size)} stopped ({' '.join(reasons[lost].split()) or 'no reason given'})", first
        if silent:
            names = " and ".join(process_name(lost, size) for lost in silent)
            return f"{names} ended without a word (killed, or out of memory)", first
        return "all processes were told to stop (SIGTERM)", first
