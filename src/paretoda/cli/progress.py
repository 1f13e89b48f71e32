"""Progress of long jobs: bars on a terminal, elsewhere a line for every tenth."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

if TYPE_CHECKING:
    from paretoda.gradients import Report


_WORTH_TELLING = 2.0
"""Seconds; what is over sooner needs no line."""


class Progress:
    """How far each job is.

    Args:
        console: where it is shown.
        shown: False shows nothing.
    """

    def __init__(self, console: Console, *, shown: bool) -> None:
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
