"""Benchmark runs in local worker processes; every result is on the disk before the next is waited for."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from paretoda.bench.contenders import RunSpec
from paretoda.bench.jobs import Bench, Execution, Job, Tally, Tell, failed
from paretoda.bench.store import Row, Store

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

    def __init__(self, how: Execution) -> None:
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


def serve(pipe: Connection, how: Execution) -> None:
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
            pipe.send(execute_or_fail(how, pipe.recv(), [after]))


def one_thread() -> None:
    """One thread for torch and for the libraries below NumPy, or the processes fight for the cores."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    torch.set_num_threads(1)
    threadpool_limits(1)


def execute_in_worker(spec: RunSpec, data: Path | None, work: Path, after: Sequence[After] = ()) -> Row:
    """Make a run of a benchmark."""
    from paretoda.bench.execute import execute_run  # noqa: PLC0415  (the bench itself trains nothing)

    return execute_run(spec, data, work, after)


def execute_or_fail(how: Execution, job: Job, after: Sequence[After] = ()) -> Row:
    """One run; whatever error it ends with is its result, and the others go on."""
    try:
        return how.take(job, how.data, how.work, after)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        expected = isinstance(error, (ValueError, OSError))
        where = "" if expected else f" ({Path(frame.filename).name}, line {frame.lineno})"
        return failed(job, f"{type(error).__name__}: {' '.join(str(error).split())}{where}")


TRIES = 3
"""A worker that dies takes its run along; that is tried again, but not for ever."""


def run_local(bench: Bench, processes: int, tell: Tell | None = None) -> list[Row]:
    """Make a benchmark's missing runs.

    Args:
        bench: what to run.
        processes: how many at a time.
        tell: progress.
    """
    with bench.store.held():
        make(bench.store, bench.missing(), Execution(execute_in_worker, bench.data, bench.work), processes, tell)
    return bench.rows()


def make(store: Store, jobs: Sequence[Job], how: Execution, processes: int, tell: Tell | None = None) -> None:
    """Make the jobs in processes of one thread each.

    Args:
        store: for their lines.
        jobs: all of them are made.
        how: they are made.
        processes: how many at a time.
        tell: progress.
    """
    _Crew(store, jobs, how, tell).work(processes)


class _Crew:
    """Workers, and the jobs that wait for one.

    Args:
        store: for the jobs' lines.
        jobs: to be made.
        how: they are made.
        tell: progress.
    """

    def __init__(self, store: Store, jobs: Sequence[Job], how: Execution, tell: Tell | None) -> None:
        self._store, self._how = store, how
        self._waiting = deque(jobs)
        self._deaths: Counter[str] = Counter()
        self._tally = Tally(jobs, tell)
        self._busy: list[Worker] = []

    def work(self, processes: int) -> None:
        """Until all is done; if that is cut short, no process is left behind."""
        try:
            for _ in range(min(processes, len(self._waiting))):
                self._hire()
            while self._busy:
                ready = wait([worker.pipe for worker in self._busy])
                for worker in [worker for worker in self._busy if worker.pipe in ready]:
                    self._listen(worker)
        finally:
            for worker in self._busy:
                worker.end()

    def _hire(self) -> None:
        if self._waiting:
            worker = Worker(self._how)
            self._busy.append(worker)
            worker.begin(self._waiting.popleft())

    def _listen(self, worker: Worker) -> None:
        said, job = worker.hear(), worker.job
        assert job is not None
        if said == STEP:
            self._tally.step(job)
        elif isinstance(said, dict):
            self._store.add(said)
            self._tally.over(job)
            self._go_on(worker)
        else:
            self._bury(worker, job)

    def _go_on(self, worker: Worker) -> None:
        worker.job = None
        if self._waiting:
            worker.begin(self._waiting.popleft())
        else:
            self._busy.remove(worker)
            worker.end()

    def _bury(self, worker: Worker, job: Job) -> None:
        """Its run is tried again when the others have had their turn; after some tries it counts as failed."""
        self._busy.remove(worker)
        how = worker.end()
        self._deaths[job.key] += 1
        if self._deaths[job.key] < TRIES:
            self._waiting.append(job)
            self._tally.again(job)
        else:
            self._store.add(failed(job, f"its process died {TRIES} times, the last time {how}"))
            self._tally.over(job)
        self._hire()
