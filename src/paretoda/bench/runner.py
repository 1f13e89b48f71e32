"""The runs of a benchmark in local processes; every result is on the disk before the next is waited for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from multiprocessing.connection import wait

from paretoda.bench.bench import Bench, Tally, Tell
from paretoda.bench.contenders import RunSpec
from paretoda.bench.store import Row
from paretoda.bench.worker import STEP, Worker, failed

__all__ = ["TRIES", "Bench", "Tell", "run_local"]

TRIES = 3
"""A worker that dies takes its run along; that is tried again, but not for ever."""


def run_local(bench: Bench, jobs: int, tell: Tell | None = None) -> list[Row]:
    """Make the missing runs in processes of one thread each.

    Args:
        bench: what to run.
        jobs: how many at a time.
        tell: progress.
    """
    with bench.store.held():
        specs = bench.missing()
        _Crew(bench, specs, tell).work(jobs)
    return bench.rows()


class _Crew:
    """Workers, and the runs that wait for one.

    Args:
        bench: what to run.
        specs: the runs that are missing.
        tell: progress.
    """

    def __init__(self, bench: Bench, specs: Sequence[RunSpec], tell: Tell | None) -> None:
        self._bench = bench
        self._waiting = deque(specs)
        self._deaths: Counter[str] = Counter()
        self._tally = Tally(specs, tell)
        self._busy: list[Worker] = []

    def work(self, jobs: int) -> None:
        """Until all is done; if that is cut short, no process is left behind."""
        try:
            for _ in range(min(jobs, len(self._waiting))):
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
            worker = Worker(self._bench.data, self._bench.work)
            self._busy.append(worker)
            worker.begin(self._waiting.popleft())

    def _listen(self, worker: Worker) -> None:
        said, spec = worker.hear(), worker.spec
        assert spec is not None
        if said == STEP:
            self._tally.step(spec)
        elif isinstance(said, dict):
            self._bench.store.add(said)
            self._tally.over(spec)
            self._go_on(worker)
        else:
            self._bury(worker, spec)

    def _go_on(self, worker: Worker) -> None:
        worker.spec = None
        if self._waiting:
            worker.begin(self._waiting.popleft())
        else:
            self._busy.remove(worker)
            worker.end()

    def _bury(self, worker: Worker, spec: RunSpec) -> None:
        """Its run is tried again when the others have had their turn; after some tries it counts as failed."""
        self._busy.remove(worker)
        how = worker.end()
        self._deaths[spec.key] += 1
        if self._deaths[spec.key] < TRIES:
            self._waiting.append(spec)
            self._tally.again(spec)
        else:
            self._bench.store.add(failed(spec, f"its process died {TRIES} times, the last time {how}"))
            self._tally.over(spec)
        self._hire()
