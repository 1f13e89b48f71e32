"""`paretoda report`: one page of a run, of several runs, or of a bench."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Quiet
from paretoda.errors import RunError
from paretoda.io.files import write_text

if TYPE_CHECKING:
    from paretoda.report.facts import RunFacts


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN|DIR…", help="directories of runs, or of a bench")],
    labelled: Annotated[
        str | None, typer.Option(metavar="DATA", help="target data with labels: oracle numbers")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="instead of report.html in the RUN")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="title of the page")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page: of a run, of several runs side by side, or of a bench."""
    from paretoda.bench.store import Store

    with Console(quiet=quiet, as_json=json) as console:
        benches = [path for path in runs if Store(path).path.is_file()]
        if benches and len(benches) < len(runs):
            raise RunError(f"{benches[0]} is a bench and others are runs; report them one by one")
        if benches and labelled is not None:
            raise RunError(f"{benches[0]} is a bench: it has its oracle accuracies already; leave out --labelled")
        if out is None and len(runs) > 1:
            raise RunError("several directories make one page; name its file with --out page.html")
        page, values = _make_bench_page(benches, title) if benches else _make_run_page(console, runs, labelled, title)
        out = out or runs[0] / "report.html"
        write_text(out, page)
        console.result(f"report: {out}")
        console.finish(lambda: {"report": str(out), **values})


def _make_bench_page(paths: Sequence[Path], title: str | None) -> tuple[str, dict[str, Any]]:
    """Return the page of one or several benches, and facts about it."""
    from paretoda.bench.contenders import select_variants
    from paretoda.bench.store import Store
    from paretoda.report.bench_page import render_bench_page

    rows = select_variants([row for path in paths for row in Store(path).results()])
    if not rows:
        raise RunError(f"{Store(paths[0]).path} has no finished run yet, or is damaged")
    names = ", ".join(path.resolve().name for path in paths)
    try:
        return render_bench_page(rows, title=title or f"ParetoDA bench {names}"), {"runs": len(rows)}
    except ValueError as error:  # two lines of one run that contradict each other
        raise RunError(f"{', '.join(str(path) for path in paths)}: {error}") from error


def _make_run_page(
    console: Console, paths: Sequence[Path], labelled: str | None, title: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the page of one or several runs, and facts about it."""
    from paretoda.report.page import render_run_page, render_runs_page

    found = {name: _read_run(console, path, labelled) for name, path in zip(_name_runs(paths), paths, strict=True)}
    oracle = {
        name: confusion.accuracy
        for name, run in found.items()
        for confusion in run.pictures.confusions
        if confusion.oracle
    }
    for name, accuracy in oracle.items():
        console.result(f"oracle accuracy of {name}: {accuracy:.4f} (labels were used for the page only)")
    values = {"runs": len(found), "oracle_accuracy": oracle}
    if len(found) > 1:
        return render_runs_page(found, title=title or f"ParetoDA: {len(found)} runs"), values
    run = next(iter(found.values()))
    return render_run_page(run if title is None else replace(run, title=title)), values


def _read_run(console: Console, path: Path, labelled: str | None) -> RunFacts:
    """Return the facts of a run from its files, with pictures if its model and data are there."""
    from paretoda.cli.predict import console_callbacks
    from paretoda.report.facts import NO_PICTURES
    from paretoda.run.build import pick_device
    from paretoda.run.callbacks import Callbacks
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.run.finish import add_pictures
    from paretoda.run.result import read_facts
    from paretoda.tasks.loading import load_run, reopen_inputs

    directory = RunDirectory(path)
    facts = read_facts(directory)
    if not directory.model.exists():
        if labelled is not None:
            raise RunError(f"the run in {path} has not finished: it has no model that --labelled could measure")
        console.say(f"The run in {path} has not finished: the page shows its curves only.")
        return facts
    device = pick_device("auto")
    task, model = load_run(path, device)
    inputs = reopen_inputs(directory, device, Callbacks(progress=console.progress))
    console.progress.stop()
    facts = add_pictures(task, facts, model, inputs)
    if facts.pictures is NO_PICTURES:
        console.say(f"The data of {path} are not where they were: the page has no pictures of them.")
    if labelled is not None:
        pictures = task.oracle_pictures(facts.pictures, model, labelled, console_callbacks(console))
        console.progress.stop()
        facts = replace(facts, pictures=pictures)
    return facts


def _name_runs(paths: Sequence[Path]) -> list[str]:
    """Return the last parts of the paths, as many as distinguish them."""
    whole = [path.resolve() for path in paths]
    if len(set(whole)) < len(whole):
        raise RunError("a run is given twice; name every directory once")
    last = [path.name for path in whole]
    if len(set(last)) == len(last):
        return last
    common = os.path.commonpath(whole)
    return [str(path.relative_to(common)) for path in whole]
