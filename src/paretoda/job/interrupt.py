"""Ctrl-C between steps: the first asks the run to save and stop, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class InterruptedRunError(RuntimeError):
    """The user stopped the run; it can be resumed."""


class StopRequest:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.made = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember the first; let the second through."""
        if self.made:
            signal.default_int_handler(number, frame)
        self.made = True


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Inside, Ctrl-C sets a flag (in the main thread; elsewhere nothing changes)."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = signal.signal(signal.SIGINT, request)
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, before)
