"""Work that is done beside the training, in a copy of the process, where a core is idle."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import torch

from paretoda.distributed.cores import has_idle_core
from paretoda.errors import RunError

Result = TypeVar("Result")

_ALLOWED = ContextVar("allowed", default=False)


@contextmanager
def copies_allowed() -> Iterator[None]:
    """Inside, a run may copy its process (fork). The command line allows it; a library must not fork its user."""
    token = _ALLOWED.set(True)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def start_beside(work: Callable[[], Result], device: torch.device) -> Beside[Result] | None:
    """Start the work in a copy of this process; None where that is not allowed, not safe, or no core is idle.

    The copy has the same memory and the same random state, so that its result has the same bits. It is safe on a CPU
    with one thread: neither a GPU nor the threads of OpenMP survive a copy.

    Args:
        work: Function without side effects; its result must be picklable.
        device: Device of the run.
    """
    safe = sys.platform == "linux" and device.type == "cpu" and torch.get_num_threads() == 1
    return Beside(work) if _ALLOWED.get() and safe and has_idle_core() else None


class Beside(Generic[Result]):
    """The result of work in another process.

    Args:
        work: Function without side effects.
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self._receiver, sender = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where other threads exist
            self._process = os.fork()
        if self._process == 0:
            _work_and_leave(work, sender)
        os.close(sender)

    def result(self) -> Result:
        """Wait for the result.

        Raises:
            RunError: The process was killed.
            Exception: What the work has raised.
        """
        with os.fdopen(self._receiver, "rb") as file:
            message = file.read()
        os.waitpid(self._process, 0)
        self._process = 0
        if not message:
            raise RunError("a process that worked beside the training was killed; does the machine have enough memory?")
        succeeded, value = pickle.loads(message)
        if not succeeded:
            raise value
        result: Result = value
        return result

    def stop(self) -> None:
        """End the process if its result was not asked for."""
        if self._process:
            with suppress(OSError):
                os.kill(self._process, signal.SIGKILL)
                os.close(self._receiver)
                os.waitpid(self._process, 0)
            self._process = 0


def _work_and_leave(work: Callable[[], Any], sender: int) -> None:
    """Send the result of the work, or its error, and end this process without running anything of its parent's."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            message = pickle.dumps((True, work()))
        except Exception as error:
            message = pickle.dumps((False, error))
        with os.fdopen(sender, "wb") as file:
            file.write(message)
    finally:
        os._exit(0)
