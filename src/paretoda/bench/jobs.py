"""Jobs of a benchmark: what can be run and stored, and how far several of them are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from paretoda.bench.contenders import RunSpec
from paretoda.bench.store import Row, Store

if TYPE_CHECKING:
    from paretoda.training.loop import After

Tell = Callable[[int, int], None]
"""Called with the steps taken and the steps of all runs together."""


_PLANNED = ("name", "judge")
"""What a plan says of a run, which does not decide its result."""


class Job(Protocol):
    """A run to be made, as plain values that another process can be told."""

    @property
    def key(self) -> str:
        """Of everything that decides the result."""
        ...

    @property
    def line(self) -> Row:
        """What its result says of it."""
        ...

    @property
    def steps(self) -> int:
        """How much of the progress it is."""
        ...


AnyJob = TypeVar("AnyJob", bound=Job)
Take = Callable[[Any, "Path | None", Path, "Sequence[After]"], Row]
"""A function of a module: from a job, the data's folder, one for unpacked archives and hooks to its whole line."""


@dataclass(frozen=True)
class Execution:
    """What makes a job.

    Args:
        take: makes one.
        data: folder of the suites' files; None where everything is embedded.
        work: folder for unpacked archives.
    """

    take: Take
    data: Path | None
    work: Path


def results(rows: Sequence[Row], jobs: Sequence[Job]) -> list[Row]:
    """The lines of these jobs, in their order, named and judged as planned; of one that was made again, the last."""
    found = {row["key"]: row for row in rows}
    planned = [(job.key, {what: said for what, said in job.line.items() if what in _PLANNED}) for job in jobs]
    return [{**found[key], **said} for key, said in planned if key in found]


def missing(rows: Sequence[Row], jobs: Sequence[AnyJob]) -> list[AnyJob]:
    """Jobs without a result, each once; one that failed is tried again."""
    found = {row["key"]: "error" not in row for row in rows}
    wanted: dict[str, AnyJob] = {}
    for job in jobs:
        wanted.setdefault(job.key, job)
    return [job for key, job in wanted.items() if not found.get(key, False)]


def failures(rows: Sequence[Row]) -> list[str]:
    """Return one sentence for each run that failed."""
    return [f"{describe_run(row)}: {row['error']}" for row in rows if "error" in row]


def describe_run(row: Row) -> str:
    """Return task, contender, variant and seed of a result, in words."""
    variant = "".join(f", {name} {value}" for name, value in row.get("variant", {}).items())
    return f"{row['task']}, {row['name']}{variant}, seed {row['seed']}"


def failed(job: Job, reason: str) -> Row:
    """The line of a run that did not finish."""
    return {**job.line, "error": reason}


class Tally:
    """How many steps the jobs have taken, told at every change.

    Args:
        jobs: that are to be made.
        tell: who wants to know.
    """

    def __init__(self, jobs: Sequence[Job], tell: Tell | None) -> None:
        self._steps = {job.key: job.steps for job in jobs}
        self._taken = dict.fromkeys(self._steps, 0)
        self._tell = tell

    def step(self, job: Job) -> None:
        """One step more."""
        self._set(job, min(self._taken[job.key] + 1, self._steps[job.key]))

    def again(self, job: Job) -> None:
        """It begins anew."""
        self._set(job, 0)

    def over(self, job: Job) -> None:
        """It has ended, one way or the other."""
        self._set(job, self._steps[job.key])

    def _set(self, job: Job, taken: int) -> None:
        self._taken[job.key] = taken
        if self._tell is not None:
            self._tell(sum(self._taken.values()), sum(self._steps.values()))


@dataclass(frozen=True)
class Bench:
    """A benchmark: its runs and where their results are kept.

    Args:
        specs: of all runs.
        directory: for runs.jsonl and unpacked archives.
        data: folder of the suites' files; None where everything is embedded.
    """

    specs: Sequence[RunSpec]
    directory: Path
    data: Path | None = None

    @property
    def store(self) -> Store:
        """The results."""
        return Store(self.directory)

    @property
    def work(self) -> Path:
        """Unpacked archives."""
        return self.directory / "data"

    def rows(self) -> list[Row]:
        """Results so far, in the order of the plan, under the names that the plan has."""
        return results(self.store.results(), self.specs)

    def missing(self) -> list[RunSpec]:
        """Runs without a result, each once; one that failed is tried again."""
        return missing(self.store.read(), self.specs)
