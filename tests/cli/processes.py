"""The command line as users call it: in a process of its own, or, where only its words count, in this one."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paretoda.cli import main

SMALL = ("--steps", "6", "--evaluate-every", "3", "--bottleneck", "8", "--no-reference")
"""Enough to train, choose and write everything."""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def last_line(self) -> Any:
        return json.loads(self.out.splitlines()[-1])

    @property
    def sentence(self) -> str:
        """The one line of an error."""
        assert self.code == 2, self
        assert "Traceback" not in self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("paretoda: ")
        return lines[0]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "paretoda", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str]) -> Ended:
    try:
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()  # one that hangs must not slow down all that follow
    return Ended(process.returncode, out, err)


def command(*arguments: object) -> Ended:
    """In a process of its own."""
    return ended(start(*arguments))


class Inside:
    """`main` in this process: no three seconds of imports."""

    def __init__(self, streams: pytest.CaptureFixture[str]) -> None:
        self._streams = streams

    def __call__(self, *arguments: object) -> Ended:
        self._streams.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        out, err = self._streams.readouterr()
        code = stop.value.code
        assert isinstance(code, int)
        return Ended(code, out, err)


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def rows_of(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
