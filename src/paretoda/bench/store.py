"""Results of runs, one JSON line each: a benchmark that is cut off goes on behind the last whole line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretoda.job.directory import RunError
from paretoda.job.lock import held
from paretoda.training.files import append_line

Row = dict[str, Any]


@dataclass(frozen=True)
class Store:
    """The results in a directory.

    Args:
        directory: of the benchmark.
    """

    directory: Path

    @property
    def path(self) -> Path:
        """One line a run."""
        return self.directory / "runs.jsonl"

    def read(self) -> list[Row]:
        """All whole lines; half a line at the end, which is being written or was cut off, is left out."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        return [self._row(number, line) for number, line in enumerate(lines, start=1)]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, nobody else writes here; the lock goes with its process, however that ends."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with held(self.directory, "a bench"):
            yield

    def add(self, row: Row) -> None:
        """Append a line, on the disk when this returns; half a line before it, from a crash, goes."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._cut_half_line()
        append_line(self.path, json.dumps(row, sort_keys=True, ensure_ascii=False), sync=True)

    def _row(self, number: int, line: bytes) -> Row:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or "key" not in row:
            raise RunError(f"line {number} of {self.path} is damaged; remove the line, its run is made again")
        return row

    def _cut_half_line(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
                file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
