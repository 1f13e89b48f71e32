"""Benchmark runs in local worker processes; every result is on disk before the next one is awaited."""

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
from paretoda.bench.jobs import Bench, Execution, Job, Tally, make_failed_row
from paretoda.bench.store import Row, Store

if TYPE_CHECKING:
    from paretoda.gradients import Report
    from paretoda.training.loop import After
    from paretoda.types import Progress

STEP = "step"
"""Message of a worker after every step.

Its message about other work is a tuple: what it does, how much is done and how much there is; at the end of a run, its
message is a row.
"""
_PATIENCE = 5.0
"""Seconds that a worker has to exit before it is killed."""
TRIES = 3
"""How often a run is tried whose worker dies."""


class Worker:
    """A process that makes one run after another, as the bench sees it.

    Args:
        execution: How jobs are run.
    """

    def __init__(self, execution: Execution) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.job: Job | None = None
        self._process = context.Process(
            target=serve, args=(theirs, execution), daemon=True
        )  # it ends with the bench at the latest
        try:
            self._start()
        except BaseException:  # Ctrl-C while it starts: nobody else could end it
            if self._process.pid is not None:
                self.end()
            raise
        finally:
            theirs.close()

    def _start(self) -> None:
        resource_tracker.ensure_running()  # its start unblocks SIGINT, so it must run already
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: only the bench handles Ctrl-C
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # a pending Ctrl-C is raised here

    def begin(self, job: Job) -> None:
        """Send it a job; if it is dead already, `receive` will notice."""
        self.job = job
        with suppress(OSError):
            self.pipe.send(job)

    def receive(self) -> str | tuple[str, int, int] | Row | None:
        """Return its next message; None if it died."""
        try:
            message: str | tuple[str, int, int] | Row = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return message

    def end(self) -> str:
        """Stop the process, whatever it does, and return in words how it ended."""
        self.pipe.close()
        self._process.join(_PATIENCE if self.job is None else 0.2)
        for stop in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                stop()
                self._process.join(_PATIENCE)
        code = self._process.exitcode or 0
        return f"with signal {-code}" if code < 0 else f"with exit code {code}"


def serve(pipe: Connection, execution: Execution) -> None:
    """Run the jobs that come through the pipe until it is closed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    use_one_thread()

    def send(message: str | tuple[str, int, int]) -> None:
        try:
            pipe.send(message)
        except OSError:
            sys.exit(0)  # the bench has ended

    def after(_taken: int, _report: Report) -> None:
        send(STEP)

    def progress(what: str, done: int, total: int) -> None:
        send((what, done, total))

    with suppress(EOFError, OSError):
        while True:
            pipe.send(execute_or_fail(execution, pipe.recv(), [after], progress))


def use_one_thread() -> None:
    """Limit torch and the libraries below NumPy to one thread, so that processes do not compete for the cores."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    torch.set_num_threads(1)
    threadpool_limits(1)


def execute_in_worker(
    spec: RunSpec, data: Path | None, work: Path, after: Sequence[After] = (), progress: Progress | None = None
) -> Row:
    """Make a run of a benchmark; see `paretoda.bench.execute.execute_run`."""
    from paretoda.bench.execute import execute_run  # noqa: PLC0415  (the bench itself trains nothing)

    return execute_run(spec, data, work, after, progress)


def execute_or_fail(
    execution: Execution, job: Job, after: Sequence[After] = (), progress: Progress | None = None
) -> Row:
    """Run a job; an error is its result, so that the other jobs continue."""
    try:
        return execution.run(job, execution.data, execution.work, after, progress)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        expected = isinstance(error, (ValueError, OSError))
        where = "" if expected else f" ({Path(frame.filename).name}, line {frame.lineno})"
        return make_failed_row(job, f"{type(error).__name__}: {' '.join(str(error).split())}{where}")


def run_local(bench: Bench, processes: int, progress: Progress | None = None) -> list[Row]:
    """Make the missing runs of a benchmark and return all results.

    Args:
        bench: The benchmark.
        processes: Number of worker processes.
        progress: Called after every step, and during other long work.
    """
    with bench.store.lock():
        run_jobs(
            bench.store, bench.missing(), Execution(execute_in_worker, bench.data, bench.work), processes, progress
        )
    return bench.rows()


def run_jobs(
    store: Store, jobs: Sequence[Job], execution: Execution, processes: int, progress: Progress | None = None
) -> None:
    """Run all jobs in worker processes of one thread each.

    Args:
        store: Where their lines are written.
        jobs: Jobs to be run.
        execution: How they are run.
        processes: Number of worker processes.
        progress: Called after every step, and during other long work.
    """
    _Pool(store, jobs, execution, progress).work(processes)


class _Pool:
    """Workers, and the jobs that wait for one.

    Args:
        store: Where the lines of the jobs are written.
        jobs: Jobs to be run.
        execution: How they are run.
        progress: Called after every step, and during other long work.
    """

    def __init__(self, store: Store, jobs: Sequence[Job], execution: Execution, progress: Progress | None) -> None:
        self._store, self._execution = store, execution
        self._waiting = deque(jobs)
        self._deaths: Counter[str] = Counter()
        self._tally = Tally(jobs, progress)
        self._busy: list[Worker] = []

    def work(self, processes: int) -> None:
        """Run all jobs; no process is left behind, even if this is interrupted."""
        try:
            for _ in range(min(processes, len(self._waiting))):
                self._start_worker()
            while self._busy:
                ready = wait([worker.pipe for worker in self._busy])
                for worker in [worker for worker in self._busy if worker.pipe in ready]:
                    self._listen(worker)
        finally:
            for worker in self._busy:
                worker.end()

    def _start_worker(self) -> None:
        if self._waiting:
            worker = Worker(self._execution)
            self._busy.append(worker)
            worker.begin(self._waiting.popleft())

    def _listen(self, worker: Worker) -> None:
        message, job = worker.receive(), worker.job
        assert job is not None
        if message == STEP:
            self._tally.step(job)
        elif isinstance(message, tuple):
            self._tally.work(job, *message)
        elif isinstance(message, dict):
            self._store.add(message)
            self._tally.finish(job)
            self._give_next(worker)
        else:
            self._replace_dead(worker, job)

    def _give_next(self, worker: Worker) -> None:
        worker.job = None
        if self._waiting:
            worker.begin(self._waiting.popleft())
        else:
            self._busy.remove(worker)
            worker.end()

    def _replace_dead(self, worker: Worker, job: Job) -> None:
        """Try the job of a dead worker again after the waiting ones; after some tries it counts as failed."""
        self._busy.remove(worker)
        ending = worker.end()
        self._deaths[job.key] += 1
        if self._deaths[job.key] < TRIES:
            self._waiting.append(job)
            self._tally.restart(job)
        else:
            self._store.add(make_failed_row(job, f"its process died {TRIES} times, the last time {ending}"))
            self._tally.finish(job)
        self._start_worker()
