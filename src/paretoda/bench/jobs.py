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

Progress = Callable[[int, int], None]
"""Called with the steps that are done and the steps of all runs together."""


_PLANNED = ("name", "judge")
"""Entries of a line that come from the plan and do not decide the result."""
RunJob = Callable[[Any, "Path | None", Path, "Sequence[After]"], Row]
"""Runs a job, given the folder of the data, one for unpacked archives and hooks; returns its whole line."""


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
    """The number of steps that the jobs have done, reported at every change.

    Args:
        jobs: Jobs to be run.
        progress: Called at every change; None if nobody listens.
    """

    def __init__(self, jobs: Sequence[Job], progress: Progress | None) -> None:
        self._steps = {job.key: job.steps for job in jobs}
        self._taken = dict.fromkeys(self._steps, 0)
        self._progress = progress

    def step(self, job: Job) -> None:
        """Count one more step of a job."""
        self._set(job, min(self._taken[job.key] + 1, self._steps[job.key]))

    def restart(self, job: Job) -> None:
        """Count a job that starts again from the beginning."""
        self._set(job, 0)

    def finish(self, job: Job) -> None:
        """Count a job that has ended, with a result or an error."""
        self._set(job, self._steps[job.key])

    def _set(self, job: Job, taken: int) -> None:
        self._taken[job.key] = taken
        if self._progress is not None:
            self._progress(sum(self._taken.values()), sum(self._steps.values()))


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
