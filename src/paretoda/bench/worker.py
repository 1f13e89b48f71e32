"""The process that makes runs for a benchmark: one thread, and an end when nobody listens any more."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from paretoda.bench.contenders import RunSpec
from paretoda.bench.jobs import How, Job, failed
from paretoda.bench.store import Row

if TYPE_CHECKING:
    from paretoda.gradients import Report
    from paretoda.training.loop import After

STEP = "step"
"""What a worker says after every step; what it says at the end of a run is a row."""
_PATIENCE = 5.0
"""Seconds for a worker to leave before it is killed."""


class Worker:
    """A process that makes one run after the other, seen from the bench.

    Args:
        how: it makes them.
    """

    def __init__(self, how: How) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.job: Job | None = None
        self._process = context.Process(
            target=serve, args=(theirs, how), daemon=True
        )  # ends with the bench at the latest
        try:
            self._start()
        except BaseException:  # Ctrl-C while it starts: nobody else knows of it
            if self._process.pid is not None:
                self.end()
            raise
        finally:
            theirs.close()

    def _start(self) -> None:
        resource_tracker.ensure_running()  # it unblocks SIGINT when it starts, so it must have started before
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is the bench's affair alone
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # a waiting Ctrl-C is raised here

    def begin(self, job: Job) -> None:
        """Hand it a run; if it is dead already, its pipe will say so."""
        self.job = job
        with suppress(OSError):
            self.pipe.send(job)

    def hear(self) -> str | Row | None:
        """The next thing that it says; None if it died."""
        try:
            said: str | Row = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return said

    def end(self) -> str:
        """Stop the process, whatever it does; in words, how it ended."""
        self.pipe.close()
        self._process.join(_PATIENCE if self.job is None else 0.2)
        for stop in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                stop()
                self._process.join(_PATIENCE)
        code = self._process.exitcode or 0
        return f"with signal {-code}" if code < 0 else f"with exit code {code}"


def serve(pipe: Connection, how: How) -> None:
    """Make the runs that come through the pipe until it is closed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    one_thread()

    def after(_taken: int, _report: Report) -> None:
        try:
            pipe.send(STEP)
        except OSError:
            sys.exit(0)  # the bench has gone

    with suppress(EOFError, OSError):
        while True:
            pipe.send(take_or_fail(how, pipe.recv(), [after]))


def one_thread() -> None:
    """One thread for torch and for the libraries below NumPy, or the processes fight for the cores."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    torch.set_num_threads(1)
    threadpool_limits(1)


def take_run(spec: RunSpec, data: Path | None, work: Path, after: Sequence[After] = ()) -> Row:
    """Make a run of a benchmark."""
    from paretoda.bench.taking import take  # noqa: PLC0415  (the bench itself trains nothing)

    return take(spec, data, work, after)


def take_or_fail(how: How, job: Job, after: Sequence[After] = ()) -> Row:
    """One run; whatever error it ends with is its result, and the others go on."""
    try:
        return how.take(job, how.data, how.work, after)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        expected = isinstance(error, (ValueError, OSError))
        where = "" if expected else f" ({Path(frame.filename).name}, line {frame.lineno})"
        return failed(job, f"{type(error).__name__}: {' '.join(str(error).split())}{where}")
