"""What a command shows: sentences and progress on stderr, results on stdout, and with --json one last line there."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from math import isfinite
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console as Terminal
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from paretoda.gradients import Report

LONGEST = 2000
"""Letters of a sentence; a longer one has its middle left out."""

_KEPT = "\n\t"


def shown(text: str, keep: str = _KEPT) -> str:
    r"""The text with every control character, and every one that turns the writing round, as its escape: \x1b.

    Args:
        text: that may hold anything.
        keep: control characters that are meant.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter in keep or not _acts(letter) else _escaped(letter) for letter in text)


def shortened(text: str) -> str:
    """The text, its middle left out where it is longer than anybody reads."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def _acts(letter: str) -> bool:
    """Controls, directions of writing and the like, and halves of letters, which cannot be printed at all."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


_WORTH_TELLING = 2.0
"""Seconds; what is over sooner needs no line."""


class Progress:
    """How far each job is.

    Args:
        console: where it is shown.
        shown: False shows nothing.
    """

    def __init__(self, console: Terminal, *, shown: bool) -> None:
        self._console = console
        self._shown = shown
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        )
        self._tasks: dict[str, TaskID] = {}
        self._begun: dict[str, tuple[float, int]] = {}
        self._tenths: dict[str, int] = {}
        self._live: Live | None = None

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        """Show that `done` of `total` is done.

        Args:
            what: the job.
            done: so far.
            total: when it is finished.
            detail: a line of facts below the bars.
        """
        if not self._shown:
            return
        if self._console.is_terminal:
            self._show(what, done, total, detail)
        else:
            self._write(what, done, total, detail)

    def after(self, what: str, total: int) -> _After:
        """What training calls after every step."""
        return _After(self, what, total)

    def stop(self) -> None:
        """Leave the bars as they are and give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, what: str, done: int, total: int, detail: str) -> None:
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=8)
            self._live.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)
        self._live.update(Group(self._bars.get_renderable(), Text(detail, overflow="ellipsis", no_wrap=False)))

    def _write(self, what: str, done: int, total: int, detail: str) -> None:
        tenth = 10 * done // max(total, 1)
        now = monotonic()
        if tenth < self._tenths.get(what, 0):  # the same job for the other domain
            del self._begun[what], self._tenths[what]
        started, before = self._begun.setdefault(what, (now, done))
        soon = not detail and now - started < _WORTH_TELLING
        if soon or tenth <= self._tenths.setdefault(what, 10 * (done - 1) // max(total, 1)):
            return
        self._tenths[what] = tenth
        left = (now - started) / max(done - before, 1) * (total - done)
        ahead = f", {left:.0f} s left" if before < done < total else ""
        self._console.print(f"{what}: {done} of {total}{ahead}{detail and f': {detail}'}", soft_wrap=True)


class _After:
    """Passes a step's report on to the progress."""

    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self._progress, self._what, self._total = progress, what, total

    def __call__(self, taken: int, report: Report) -> None:
        self._progress(self._what, taken, self._total, str(report))


_QUIET = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON would leave as it is and a terminal might obey or refuse; JSON has escapes for it."""


class Console:
    """The two streams of a command.

    Args:
        quiet: only errors and the JSON line are shown.
        as_json: stdout gets one line of JSON and nothing else.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.as_json = as_json
        self._aside = Terminal(stderr=True, quiet=quiet, markup=False, highlight=False)
        self._results = self._aside if as_json else Terminal(quiet=quiet, markup=False, highlight=False)
        self.progress = Progress(self._aside, shown=not quiet)

    def __enter__(self) -> Console:
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
