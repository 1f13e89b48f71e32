"""A benchmark: its runs, and where their results are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paretoda.bench.contenders import RunSpec
from paretoda.bench.jobs import missing, results
from paretoda.bench.store import Row, Store


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
