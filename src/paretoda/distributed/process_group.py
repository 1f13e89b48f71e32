"""Several processes, started by torchrun, join for one run; when one of them is lost, the others can say so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from itertools import accumulate, count
from typing import Any, NoReturn, TypeVar

import torch
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from paretoda.distributed.collectives import LostProcessError, Processes, current_processes
from paretoda.distributed.messages import Messages, process_name
from paretoda.errors import SettingsError

Made = TypeVar("Made")

_PATIENCE = timedelta(hours=2)
"""For a process that is alive but busy, for example with the features of a frozen backbone; a dead one is noticed."""
_SOON = timedelta(seconds=5)
_joined: list[Messages] = []
_runs = count()


class OtherProcessError(ValueError):
    """Another process could not begin; the message is its reason."""


@contextmanager
def process_group() -> Iterator[Processes]:
    """The processes that torchrun started, or of a group that is there already; one that is alone otherwise."""
    if current_processes().size > 1 or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield current_processes()
        return
    processes = _join()
    try:
        with _heard_signals():
            yield processes
    except LostProcessError as error:
        raise LostProcessError(*_joined[-1].story()) from error
    except BaseException as error:
        _joined[-1].leave(str(error))
        raise
    _joined.pop()
    dist.destroy_process_group()


def run_on_all_ranks(processes: Processes, work: Callable[[], Made], *, first_alone: bool = False) -> Made:
    """What the work gives; where it fails in one process, it fails in all of them, before anyone waits for anyone.

    Args:
        processes: that all do the work.
        work: in which no process waits for another.
        first_alone: the others begin when the first has finished, and find in a cache what it has left there.
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
        told = _texts(processes, "" if failure is None else f"{type(failure).__name__}: {failure}")
        rank = next((rank for rank, text in enumerate(told) if text), None)
        if failure is None and rank is not None:
            failure = OtherProcessError(f"{process_name(rank, processes.size)} could not begin ({told[rank]})")
    if failure is not None:
        raise failure
    return made  # type: ignore[return-value]  # it was made


def is_joined() -> bool:
    """Whether this process has met the others, and they have not parted in peace."""
    return bool(_joined)


def mark_as_reported() -> None:
    """The first process has told the user what is to be told: the others may end."""
    for words in _joined:
        words.put("told", "")


def wait_for_report() -> None:
    """Give the first process a moment to tell the user: when any process ends with an error, torchrun ends all."""
    for words in _joined:
        words.known("told", _SOON)


def device_of_rank(name: str, processes: Processes) -> str:
    """The device of this process: with several, each has its own GPU."""
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
    _joined.append(Messages(PrefixStore("words", run), processes))
    return processes


@cache
def _store() -> tuple[Any, int, int]:
    """The store that torchrun keeps, this process's rank, and how many there are; one for all runs of the process."""
    found: tuple[Any, int, int] = next(iter(rendezvous("env://", timeout=_PATIENCE)))
    return found


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def _texts(processes: Processes, own: str) -> list[str]:
    """A text of every process."""
    rows = torch.tensor(list(own.encode()), dtype=torch.uint8)
    counts = [length for (length,) in processes.numbers(len(rows))]
    if not max(counts):
        return [""] * processes.size
    found = bytes(processes.gather(rows, counts).tolist())
    ends = list(accumulate(counts))
    return [found[end - length : end].decode() for end, length in zip(ends, counts, strict=True)]


@contextmanager
def _heard_signals() -> Iterator[None]:
    """Inside, SIGTERM, which torchrun sends to all when one of them has ended, is an error that can be told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ended(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows only tells it
        raise LostProcessError("told to stop")

    before = signal.signal(signal.SIGTERM, ended)
    try:
        yield
    except LostProcessError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise
    except BaseException:
        signal.signal(signal.SIGTERM, before)
        raise
    signal.signal(signal.SIGTERM, before)
