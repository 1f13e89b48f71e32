"""Ctrl-C and SIGTERM between steps: the first asks the run to save and stop, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class InterruptedRunError(RuntimeError):
    """The user stopped the run; it can be resumed."""


class StopRequest:
    """Whether Ctrl-C was pressed, or somebody asked the process to end.

    Args:
        copies: how often it arrives; torchrun passes it on to processes that the terminal has told already.
    """

    def __init__(self, copies: int = 1) -> None:
        self.made = False
        self._left = copies

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember the first; let the second through."""
        if not self._left:
            signal.default_int_handler(number, frame)
        self.made = True
        self._left -= 1


@contextmanager
def stop_requests(copies: int = 1) -> Iterator[StopRequest]:
    """Inside, Ctrl-C and SIGTERM set a flag (in the main thread; elsewhere nothing changes).

    Who has a handler of his own for SIGTERM keeps it.
    """
    request = StopRequest(copies)
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    usual = signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, signal.default_int_handler)
    numbers = (signal.SIGINT, signal.SIGTERM) if usual else (signal.SIGINT,)
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
