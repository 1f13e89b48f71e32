"""Jobs of a benchmark: what can be run and stored, and the progress of several jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from paretoda.bench.contenders import RunSpec
from paretoda.bench.store import Row, Store

if TYPE_CHECKING:
    from paretoda.training.loop import After
    from paretoda.types import Progress

TRAINING = "training"
"""What the progress of all steps of all runs together is called."""

_PLANNED = ("name", "judge")
"""Entries of a line that come from the plan and do not decide the result."""
RunJob = Callable[[Any, "Path | None", Path, "Sequence[After]", "Progress | None"], Row]
"""Runs a job, given the folder of the data, one for unpacked archives, hooks that are called after every step, and a
function that is called with the progress of other long work; returns its whole line."""


class Job(Protocol):
    """A run to be made, as plain values that can be sent to another process."""

    @property
    def key(self) -> str:
        """A hash of everything that decides the result."""
        ...

    @property
    def line(self) -> Row:
        """What its result says about it."""
        ...

    @property
    def steps(self) -> int:
        """Its number of steps, for the progress."""
        ...


AnyJob = TypeVar("AnyJob", bound=Job)


@dataclass(frozen=True)
class Execution:
    """How jobs are run.

    Args:
        run: Function that runs one; it is importable, so that other processes can call it.
        data: Folder of the suites' files; None if everything is embedded.
        work: Folder for unpacked archives.
    """

    run: RunJob
    data: Path | None
    work: Path


def collect_results(rows: Sequence[Row], jobs: Sequence[Job]) -> list[Row]:
    """Return the lines of the jobs in their order, with name and judge of the plan; the last line of a job counts."""
    found = {row["key"]: row for row in rows}
    planned = [(job.key, {name: value for name, value in job.line.items() if name in _PLANNED}) for job in jobs]
    return [{**found[key], **own} for key, own in planned if key in found]


def find_missing(rows: Sequence[Row], jobs: Sequence[AnyJob]) -> list[AnyJob]:
    """Return the jobs without a result, each once; one that failed is among them."""
    found = {row["key"]: "error" not in row for row in rows}
    wanted: dict[str, AnyJob] = {}
    for job in jobs:
        wanted.setdefault(job.key, job)
    return [job for key, job in wanted.items() if not found.get(key, False)]


def describe_failures(rows: Sequence[Row]) -> list[str]:
    """Return one sentence for each run that failed."""
    return [f"{describe_run(row)}: {row['error']}" for row in rows if "error" in row]


def describe_run(row: Row) -> str:
    """Return task, contender, variant and seed of a result, in words."""
    variant = "".join(f", {name} {value}" for name, value in row.get("variant", {}).items())
    return f"{row['task']}, {row['name']}{variant}, seed {row['seed']}"


def make_failed_row(job: Job, reason: str) -> Row:
    """Return the line of a run that did not finish."""
    return {**job.line, "error": reason}


class Tally:
    """The steps that all jobs have done, and other work of those that are running, reported at every change.

    Args:
        jobs: Jobs to be run.
        progress: Called at every change with sums over the jobs; None if nobody listens.
    """

    def __init__(self, jobs: Sequence[Job], progress: Progress | None) -> None:
        self._steps = {job.key: job.steps for job in jobs}
        self._taken = dict.fromkeys(self._steps, 0)
        self._other: dict[str, dict[str, tuple[int, int]]] = {}
        self._progress = progress

    def step(self, job: Job) -> None:
        """Count one more step of a job."""
        self._set(job, min(self._taken[job.key] + 1, self._steps[job.key]))

    def restart(self, job: Job) -> None:
        """Count a job that starts again from the beginning."""
        self._forget_other(job)
        self._set(job, 0)

    def finish(self, job: Job) -> None:
        """Count a job that has ended, with a result or an error."""
        self._forget_other(job)
        self._set(job, self._steps[job.key])

    def work(self, job: Job, what: str, done: int, total: int) -> None:
        """Count what a job that is running has done besides its steps."""
        known = self._other.setdefault(what, {})
        known[job.key] = done, total
        self._report(what, sum(each for each, _ in known.values()), sum(each for _, each in known.values()))

    def _forget_other(self, job: Job) -> None:
        for known in self._other.values():
            known.pop(job.key, None)

    def _set(self, job: Job, taken: int) -> None:
        self._taken[job.key] = taken
        self._report(TRAINING, sum(self._taken.values()), sum(self._steps.values()))

    def _report(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)


@dataclass(frozen=True)
class Bench:
    """A benchmark: its runs, and where their results are kept.

    Args:
        specs: All runs.
        directory: Directory of runs.jsonl and of unpacked archives.
        data: Folder of the suites' files; None if everything is embedded.
    """

    specs: Sequence[RunSpec]
    directory: Path
    data: Path | None = None

    @property
    def store(self) -> Store:
        """The file with the results."""
        return Store(self.directory)

    @property
    def work(self) -> Path:
        """The folder of unpacked archives."""
        return self.directory / "data"

    def rows(self) -> list[Row]:
        """Return the results so far, in the order and under the names of the plan."""
        return collect_results(self.store.results(), self.specs)

    def missing(self) -> list[RunSpec]:
        """Return the runs without a result, each once; one that failed is among them."""
        return find_missing(self.store.read(), self.specs)
