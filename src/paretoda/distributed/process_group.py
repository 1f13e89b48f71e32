"""The process group of a run that torchrun has started, and the messages that explain why a process has ended."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import accumulate, count
from typing import Any, NoReturn, TypeVar

import torch
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from paretoda.distributed.collectives import LostProcessError, Processes, current_processes
from paretoda.errors import SettingsError

Made = TypeVar("Made")
_PATIENCE = timedelta(hours=2)
"""Time limit for a process that is busy, for example with the features of a frozen backbone; a dead one is noticed."""
_SOON = timedelta(seconds=5)
_open_groups: list[Messages] = []
_runs = count()


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


class OtherProcessError(ValueError):
    """Another process could not start; the message gives its reason."""


@contextmanager
def process_group() -> Iterator[Processes]:
    """Yield the processes that torchrun started, or of a group that exists already; otherwise a single process.

    Raises:
        LostProcessError: Another process has ended or does not answer.
    """
    if current_processes().size > 1 or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield current_processes()
        return
    processes = _join()
    try:
        with _sigterm_as_error():
            yield processes
    except LostProcessError as error:
        raise LostProcessError(*_open_groups[-1].explain_loss()) from error
    except BaseException as error:
        _open_groups[-1].leave_reason(str(error))
        raise
    _open_groups.pop()
    dist.destroy_process_group()


def run_on_all_ranks(processes: Processes, work: Callable[[], Made], *, first_alone: bool = False) -> Made:
    """Return the result of the work; where it fails in one process, it fails in all, before any waits for another.

    Args:
        processes: Processes that all do the work.
        work: Work in which no process waits for another.
        first_alone: Whether the others start when the first has finished, to find its results in a cache.

    Raises:
        OtherProcessError: The work failed in another process.
    """
    made: Made | None = None
    failure: Exception | None = None
    if first_alone and processes.rank:
        processes.any(False)
    try:
        made = work()
    except Exception as error:
        failure = error
    if first_alone and not processes.rank:
        processes.any(False)
    if processes.size > 1:
        failures = _gather_texts(processes, "" if failure is None else f"{type(failure).__name__}: {failure}")
        rank = next((rank for rank, text in enumerate(failures) if text), None)
        if failure is None and rank is not None:
            failure = OtherProcessError(f"{process_name(rank, processes.size)} could not begin ({failures[rank]})")
    if failure is not None:
        raise failure
    return made  # type: ignore[return-value]  # without a failure there is a result


def is_joined() -> bool:
    """Return whether the process group is initialised and not yet closed."""
    return bool(_open_groups)


def mark_as_reported() -> None:
    """Tell the other processes that the first has reported the error to the user, so that they may end."""
    for messages in _open_groups:
        messages.put("reported", "")


def wait_for_report() -> None:
    """Wait for a moment until the first process has reported the error to the user.

    When any process ends with an error, torchrun ends all of them.
    """
    for messages in _open_groups:
        messages.wait_for("reported", _SOON)


def device_of_rank(name: str, processes: Processes) -> str:
    """Return the device of this process: with several processes, each has its own GPU.

    Args:
        name: Device of the settings.
        processes: Processes of the run.

    Raises:
        SettingsError: One GPU is named for several processes.
    """
    if processes.size == 1 or name == "cpu":
        return name
    if name not in ("auto", "cuda"):
        raise SettingsError(f"several processes take a GPU each; leave out --device {name}")
    return f"cuda:{_local_rank()}" if name == "cuda" or torch.cuda.is_available() else "cpu"


def _join() -> Processes:
    store, rank, size = _store()
    gpus = torch.cuda.is_available()
    if gpus:
        torch.cuda.set_device(_local_rank())
    run = PrefixStore(f"paretoda-{next(_runs)}", store)
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    dist.init_process_group(backend, store=PrefixStore("group", run), rank=rank, world_size=size, timeout=_PATIENCE)
    processes = Processes(rank, size)
    _open_groups.append(Messages(PrefixStore("messages", run), processes))
    return processes


@cache
def _store() -> tuple[Any, int, int]:
    """Return torchrun's store, this process's rank and the number of processes, once for all runs."""
    found: tuple[Any, int, int] = next(iter(rendezvous("env://", timeout=_PATIENCE)))
    return found


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def _gather_texts(processes: Processes, own: str) -> list[str]:
    """Return a text of every process."""
    rows = torch.tensor(list(own.encode()), dtype=torch.uint8)
    counts = [length for (length,) in processes.gather_numbers(len(rows))]
    if not max(counts):
        return [""] * processes.size
    found = bytes(processes.gather(rows, counts).tolist())
    ends = list(accumulate(counts))
    return [found[end - length : end].decode() for end, length in zip(ends, counts, strict=True)]


@contextmanager
def _sigterm_as_error() -> Iterator[None]:
    """Inside, SIGTERM, which torchrun sends to all when one process has ended, raises an error."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_lost(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows only reports it
        raise LostProcessError("told to stop")

    before = signal.signal(signal.SIGTERM, raise_lost)
    try:
        yield
    except LostProcessError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise
    except BaseException:
        signal.signal(signal.SIGTERM, before)
        raise
    signal.signal(signal.SIGTERM, before)
