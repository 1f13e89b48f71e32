"""`paretoda study`: why it works, or does not."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Quiet, split

if TYPE_CHECKING:
    from paretoda.studies.page import Page


def study(  # noqa: PLR0913  (options, not arguments)
    name: Annotated[
        Literal["ablation", "path", "scales", "backbones", "front", "guides"],
        typer.Argument(metavar="STUDY", help="ablation, path, scales, backbones, front or guides"),
    ],
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="suite of tasks")] = "office-caltech10",
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="results; a study that was stopped is resumed here")],
    task: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="names of tasks (W-A; guides: A-C,C-A,W-A; else the first)")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="runs of each kind")] = 3,
    steps: Annotated[int | None, typer.Option(min=5, help="steps of each run (500; front: 300)")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at a time (one for each core)")] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="the suite's files ($PARETODA_DATA)")] = None,
    calibrate: Annotated[bool, typer.Option(help="scales: calibrate the losses of every scheme")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Why it works, or does not: the paper's analyses and ours, with target labels as an oracle; resumable."""
    # Imported here, they keep torch out of `paretoda --help`.
    from paretoda.studies.catalogue import make_study  # noqa: PLC0415
    from paretoda.studies.request import StudyRequest  # noqa: PLC0415

    with Console(quiet=quiet, as_json=json) as console:
        request = StudyRequest(
            directory=out,
            suite=suite,
            tasks=split(task),
            seeds=seeds,
            steps=steps,
            jobs=jobs or os.cpu_count() or 1,
            data=data,
            calibrate=calibrate,
            tell=console.progress,
        )
        page = make_study(name, request, shlex.join(["paretoda", *sys.argv[1:]]))
        console.progress.stop()
        _show(console, page)
        console.result(f"page: {out / 'report.html'} (also study.md, and a .csv for every table)")
        console.finish(
            lambda: {"study": name, "answer": list(page.answer), "failed": len(page.failures), "out": str(out)}
        )


def _show(console: Console, page: Page) -> None:
    """Print the answer, the tables and the failures of a study."""
    for sentence in page.answer:
        console.result(sentence)
    for section in page.sections:
        if section.grid is not None:
            console.result()
            console.result(section.heading)
            sides = {column or " ": "right" if place else "left" for place, column in enumerate(section.grid.columns)}
            console.table(sides, [list(row) for row in section.grid.rows])
    for sentence in page.failures:
        console.say(f"failed: {sentence}")
    console.result()
