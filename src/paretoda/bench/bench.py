"""A benchmark: its runs, where their results are kept, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paretoda.bench.contenders import RunSpec
from paretoda.bench.store import Row, Store
from paretoda.job.settings import make_settings

Tell = Callable[[int, int], None]
"""Called with the steps taken and the steps of all runs together."""


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
        found = {row["key"]: row for row in self.store.read()}
        return [{**found[spec.key], "name": spec.contender.name} for spec in self.specs if spec.key in found]

    def missing(self) -> list[RunSpec]:
        """Runs without a result, each once; one that failed is tried again."""
        found = {row["key"]: row for row in self.store.read()}
        wanted: dict[str, RunSpec] = {}
        for spec in self.specs:
            wanted.setdefault(spec.key, spec)
        return [spec for key, spec in wanted.items() if "error" in found.get(key, {"error": "not made yet"})]


class Tally:
    """How many steps the runs have taken, told at every change.

    Args:
        specs: of the runs that are to be made.
        tell: who wants to know.
    """

    def __init__(self, specs: Sequence[RunSpec], tell: Tell | None) -> None:
        self._steps = {spec.key: steps_of(spec) for spec in specs}
        self._taken = dict.fromkeys(self._steps, 0)
        self._tell = tell

    def step(self, spec: RunSpec) -> None:
        """One step more."""
        self._set(spec, min(self._taken[spec.key] + 1, self._steps[spec.key]))

    def again(self, spec: RunSpec) -> None:
        """It begins anew."""
        self._set(spec, 0)

    def over(self, spec: RunSpec) -> None:
        """It has ended, one way or the other."""
        self._set(spec, self._steps[spec.key])

    def _set(self, spec: RunSpec, taken: int) -> None:
        self._taken[spec.key] = taken
        if self._tell is not None:
            self._tell(sum(self._taken.values()), sum(self._steps.values()))


def steps_of(spec: RunSpec) -> int:
    """How much of the progress a run is."""
    settings = spec.settings
    return 1 if "baseline" in settings else make_settings(settings).steps
