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
    """Signal handler that remembers whether Ctrl-C was pressed or SIGTERM was sent.

    Args:
        copies: How often one request arrives; torchrun passes it on to processes that have it from the terminal.
    """

    def __init__(self, copies: int = 1) -> None:
        self.made = False
        self._left = copies

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember the first request; let the second one through."""
        if not self._left:
            signal.default_int_handler(number, frame)
        self.made = True
        self._left -= 1


@contextmanager
def stop_requests(copies: int = 1) -> Iterator[StopRequest]:
    """Let Ctrl-C and SIGTERM set a flag instead of ending the process, in the main thread; elsewhere nothing changes.

    An existing SIGTERM handler is left in place.
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
