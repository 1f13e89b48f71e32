"""What a command prints: sentences and progress on stderr, results on stdout, and with --json one last line there."""

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

LONGEST_SENTENCE = 2000
"""Characters of a sentence; the middle of a longer one is left out."""

_KEPT = "\n\t"
_WORTH_A_LINE = 2.0
"""Seconds; a shorter job gets no line in a log."""
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that JSON does not escape, but that a terminal might act on or refuse."""


def escape_controls(text: str, keep: str = _KEPT) -> str:
    r"""Return the text with control characters and changes of writing direction as escapes, such as \x1b.

    Args:
        text: Text that may hold anything.
        keep: Control characters that are left as they are.
    """
    if text.isprintable():
        return text
    return "".join(_escape(letter) if _is_control(letter) and letter not in keep else letter for letter in text)


def shorten(text: str) -> str:
    """Return the text, without its middle if it is longer than `LONGEST_SENTENCE`."""
    half = LONGEST_SENTENCE // 2
    return text if len(text) <= LONGEST_SENTENCE else f"{text[:half]} … {text[-half:]}"


def _is_control(letter: str) -> bool:
    """Return whether a terminal would act on the letter (controls, directions) or cannot print it (surrogates)."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


class Progress:
    """The progress of each job: bars on a terminal, lines in a log.

    Args:
        console: Where the progress is printed.
        shown: Whether it is printed at all.
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
            what: Name of the job.
            done: Amount of work that is done.
            total: Amount of work of the whole job.
            detail: A line of facts below the bars.
        """
        if not self._shown:
            return
        if self._console.is_terminal:
            self._show(what, done, total, detail)
        else:
            self._write(what, done, total, detail)

    def after(self, what: str, total: int) -> _After:
        """Return the hook that training calls after every step.

        Args:
            what: Name of the job.
            total: Number of its steps.
        """
        return _After(self, what, total)

    def stop(self) -> None:
        """Leave the bars as they are and release the terminal."""
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
        soon = not detail and now - started < _WORTH_A_LINE
        if soon or tenth <= self._tenths.setdefault(what, 10 * (done - 1) // max(total, 1)):
            return
        self._tenths[what] = tenth
        left = (now - started) / max(done - before, 1) * (total - done)
        ahead = f", {left:.0f} s left" if before < done < total else ""
        self._console.print(f"{what}: {done} of {total}{ahead}{detail and f': {detail}'}", soft_wrap=True)


class _After:
    """A hook that passes the report of a step on to the progress."""

    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self._progress, self._what, self._total = progress, what, total

    def __call__(self, taken: int, report: Report) -> None:
        self._progress(self._what, taken, self._total, str(report))


class Console:
    """The two streams of a command.

    Args:
        quiet: Print only errors and the JSON line.
        as_json: Print one line of JSON on stdout and nothing else.
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
        """Print a sentence beside the results."""
        self._aside.print(escape_controls(sentence), soft_wrap=True)

    def result(self, text: str = "") -> None:
        """Print a line of the results."""
        self._results.print(escape_controls(text), soft_wrap=True)

    def raw(self, text: str) -> None:
        """Print data on stdout as they are; on a terminal, where nobody parses them, escape control characters."""
        if not self.as_json:
            sys.stdout.write(escape_controls(text) if sys.stdout.isatty() else text)

    def table(self, columns: Mapping[str, str], rows: list[list[str]]) -> None:
        """Print a table of the results.

        Args:
            columns: Heading -> alignment, "left" or "right".
            rows: Texts of the cells.
        """
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading, side in columns.items():
            table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
        for row in rows:
            table.add_row(*(escape_controls(cell, keep="") for cell in row))
        self._results.print(table)

    def finish(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """End the command; with --json, print these values as the last line of stdout."""
        self.progress.stop()
        if self.as_json:
            line = json.dumps(_replace_nonfinite(values()), ensure_ascii=False, allow_nan=False)
            print(_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line), file=sys.stdout, flush=True)


def _replace_nonfinite(value: Any) -> Any:
    """Return the value with None in place of NaN and infinity, which JSON cannot express."""
    if isinstance(value, Mapping):
        return {key: _replace_nonfinite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_nonfinite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
