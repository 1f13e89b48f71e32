"""`paretoda study`: why it works, or does not."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from paretoda.cli.console import Console
from paretoda.cli.options import split
from paretoda.studies.catalogue import make_study
from paretoda.studies.request import StudyRequest


def run_study(  # noqa: PLR0913  (options, not arguments)
    screen: Console,
    name: str,
    suite: str,
    out: Path,
    *,
    task: str | None,
    seeds: int,
    steps: int | None,
    jobs: int | None,
    data: Path | None,
) -> None:
    """Make the runs that are missing in `out`, then print and write what they say."""
    ask = StudyRequest(
        directory=out,
        suite=suite,
        tasks=split(task),
        seeds=seeds,
        steps=steps,
        jobs=jobs or os.cpu_count() or 1,
        data=data,
        tell=lambda done, total: screen.progress("training", done, total),
    )
    page = make_study(name, ask, shlex.join(["paretoda", *sys.argv[1:]]))
    screen.progress.stop()
    for sentence in page.answer:
        screen.result(sentence)
    for section in page.sections:
        if section.grid is not None:
            screen.result()
            screen.result(section.heading)
            sides = {column or " ": "right" if place else "left" for place, column in enumerate(section.grid.columns)}
            screen.table(sides, [list(row) for row in section.grid.rows])
    for sentence in page.failures:
        screen.say(f"failed: {sentence}")
    screen.result()
    screen.result(f"page: {out / 'report.html'} (also study.md, and a .csv for every table)")
    screen.finish(lambda: {"study": name, "answer": list(page.answer), "failed": len(page.failures), "out": str(out)})
