"""What a command shows: sentences and progress on stderr, results on stdout, and with --json one last line there."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from math import isfinite
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table

from paretoda.cli.plain_text import shown
from paretoda.cli.progress import Progress

_QUIET = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON would leave as it is and a terminal might obey or refuse; JSON has escapes for it."""


class Screen:
    """The two streams of a command.

    Args:
        quiet: only errors and the JSON line are shown.
        as_json: stdout gets one line of JSON and nothing else.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.as_json = as_json
        self._aside = Console(stderr=True, quiet=quiet, markup=False, highlight=False)
        self._results = self._aside if as_json else Console(quiet=quiet, markup=False, highlight=False)
        self.progress = Progress(self._aside, shown=not quiet)

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def say(self, sentence: str) -> None:
        """A sentence beside the results."""
        self._aside.print(shown(sentence), soft_wrap=True)

    def result(self, text: str = "") -> None:
        """A line of the results."""
        self._results.print(shown(text), soft_wrap=True)

    def raw(self, text: str) -> None:
        """Data on stdout, as they are; on a terminal, where nobody parses them, as text that does nothing."""
        if not self.as_json:
            sys.stdout.write(shown(text) if sys.stdout.isatty() else text)

    def table(self, columns: Mapping[str, str], rows: list[list[str]]) -> None:
        """A table of the results.

        Args:
            columns: heading -> "left" or "right".
            rows: their texts.
        """
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading, side in columns.items():
            table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
        for row in rows:
            table.add_row(*(shown(cell, keep="") for cell in row))
        self._results.print(table)

    def finish(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """With --json, print these values as the last line of stdout."""
        self.progress.stop()
        if self.as_json:
            line = json.dumps(_finite(values()), ensure_ascii=False, allow_nan=False)
            print(_QUIET.sub(lambda found: f"\\u{ord(found[0]):04x}", line), file=sys.stdout, flush=True)


def _finite(value: Any) -> Any:
    """The same with null for NaN and infinity, which JSON has no words for."""
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
