"""`paretoda study`: why it works, or does not."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preset, Quiet, parse_numbers, read_settings, split, with_settings
from paretoda.run.settings import settings_of_others
from paretoda.tasks import CLASSIFICATION

if TYPE_CHECKING:
    from paretoda.studies.page import Page


DECIDED = ("task", "from_run", "method", "target_loss", "scheme", "seed", "reference", "checkpoint_every", "track")
"""Settings that no study takes: it decides them itself, or its runs have no use for them."""


@with_settings(leave_out=(*DECIDED, *settings_of_others(CLASSIFICATION)))
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
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at a time (one for each core)")] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="the suite's files ($PARETODA_DATA)")] = None,
    factors: Annotated[
        str | None, typer.Option(metavar="X,Y,…", help="scales: factors of the losses (0.1,0.5,1,1.5)")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="paper|ours", help="ablation: the paper's rows, or ours (both)")
    ] = None,
    preset: Preset = None,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
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
            jobs=jobs or os.cpu_count() or 1,
            data=data,
            settings=read_settings({**settings, "preset": preset}),
            factors=parse_numbers("--factors", split(factors)),
            rows=rows or "",
            tell=console.progress,
            say=console.say,
        )
        page = make_study(name, request, shlex.join(["paretoda", *sys.argv[1:]]))
        console.progress.stop()
        _show(console, page)
        console.result(f"page: {out / 'report.html'} (also study.md, and a .csv for every table)")
        console.finish(
            lambda: {"study": name, "answer": list(page.answer), "failed": len(page.failures), "out": str(out)}
        )
        if page.failures:
            console.say(f"{len(page.failures)} runs failed; the same command tries them again.")
            raise typer.Exit(1)


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
