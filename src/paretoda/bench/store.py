"""Results of runs, one JSON line each; a benchmark that was cut off continues after the last whole line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from paretoda.errors import RunError
from paretoda.io.files import append_line, parse_json
from paretoda.io.lock import lock_directory
from paretoda.run.directory.tables import Count, Number, first_reason
from paretoda.run.result import Run

Row = dict[str, Any]


def _fraction(value: float | None) -> float | None:
    if value is not None and isfinite(value) and not 0 <= value <= 1:
        raise ValueError(f"{value} is not a fraction from 0 to 1")
    return value


Fraction = Annotated[float | None, AfterValidator(_fraction)]


class Result(BaseModel):
    """The entries of a line that tables and pages read; a line may have more."""

    model_config = ConfigDict(extra="allow")

    key: str
    suite: str
    task: str
    name: str
    seed: Count
    settings: dict[str, Any] | None = None
    judge: str | None = None
    scores: dict[str, Number] = {}
    moves: dict[str, Count] | None = None
    versions: dict[str, Any] | None = None
    seconds: Annotated[float | None, Field(ge=0, le=1e12)] = None
    chosen_step: Count | None = None
    error: str = ""
    accuracy: dict[str, Fraction] | None = None
    mean_class_accuracy: dict[str, Fraction] | None = None
    miou: dict[str, Fraction] | None = None
    r2: dict[str, Number] | None = None


@dataclass(frozen=True)
class Store:
    """The results in a directory.

    Args:
        directory: Directory of the benchmark.
    """

    directory: Path

    @property
    def path(self) -> Path:
        """The file, with one line for each run."""
        return self.directory / "runs.jsonl"

    def read(self) -> list[Row]:
        """Return all whole lines; half a line at the end, being written or cut off, is left out."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        return [self._row(number, line) for number, line in enumerate(lines, start=1)]

    def results(self) -> list[Row]:
        """Return all whole lines of a bench, with the entries that tables and pages read checked."""
        return [self._result(number, row) for number, row in enumerate(self.read(), start=1)]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from writing here inside the block; the lock ends with its process, however that ends."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with lock_directory(self.directory, "a bench"):
            yield

    def add(self, row: Row) -> None:
        """Append a line, which is on disk when this returns; half a line before it, from a crash, is removed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._cut_half_line()
        append_line(self.path, json.dumps(row, sort_keys=True, ensure_ascii=False), sync=True)

    def _result(self, number: int, row: Row) -> Row:
        try:
            return Result.model_validate(row).model_dump(exclude_unset=True)
        except ValueError as error:
            what = f"line {number} of {self.path} is damaged ({first_reason(error)})"
            raise RunError(f"{what}; remove the line, and its run is repeated") from error

    def _row(self, number: int, line: bytes) -> Row:
        try:
            row = parse_json(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            raise RunError(f"line {number} of {self.path} is damaged; remove the line, and its run is repeated")
        return row

    def _cut_half_line(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
                file.truncate(self.path.read_bytes().rfind(b"\n") + 1)


def describe_result(run: Run) -> Row:
    """Return how the model was selected, by which scores, and the mean weight of each loss."""
    names = run.history[-1]["weights"]
    return {
        "selection": run.settings.select,
        "chosen_step": run.chosen,
        "scores": run.scores,
        "moves": run.moves,
        "weights": {name: float(np.mean([line["weights"][name] for line in run.history])) for name in names},
        "config": run.settings.model_dump(mode="json"),
    }
