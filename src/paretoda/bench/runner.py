"""Runs in local processes; every result is on the disk before the next is waited for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from multiprocessing.connection import wait

from paretoda.bench.bench import Bench
from paretoda.bench.jobs import How, Job, Tally, Tell, failed
from paretoda.bench.store import Row, Store
from paretoda.bench.worker import STEP, Worker, take_run

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
        make(bench.store, bench.missing(), How(take_run, bench.data, bench.work), processes, tell)
    return bench.rows()


def make(store: Store, jobs: Sequence[Job], how: How, processes: int, tell: Tell | None = None) -> None:
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

    def __init__(self, store: Store, jobs: Sequence[Job], how: How, tell: Tell | None) -> None:
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
