"""`paretoda bench`: tasks x contenders x seeds, with tables and a page."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preset, Quiet, parse_numbers, read_settings, split, with_settings
from paretoda.errors import SettingsError

if TYPE_CHECKING:
    from paretoda.bench.jobs import Bench
    from paretoda.bench.request import BenchRequest


@with_settings(leave_out=("method", "target_loss", "scheme", "lr", "seed", "reference"))
def bench(  # noqa: PLR0913  (options, not arguments)
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="tasks (`paretoda list suites`)")],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="results; a bench that was stopped is resumed here")],
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="the suite's files ($PARETODA_DATA)")] = None,
    tasks: Annotated[str | None, typer.Option(metavar="A,B,…", help="tasks of the suite (default all)")] = None,
    methods: Annotated[str | None, typer.Option(metavar="A,B,…", help="alignments (default source-only,dann)")] = None,
    target_losses: Annotated[str | None, typer.Option(metavar="A,B,…", help="target losses (default none,tcm)")] = None,
    schemes: Annotated[str | None, typer.Option(metavar="A,B,…", help="schemes (default linear,paretoda)")] = None,
    baselines: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="shallow contenders (`paretoda list baselines`)")
    ] = None,
    contenders: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml|paper", help="a table of settings for each row, or the paper's rows"),
    ] = None,
    preset: Preset = None,
    lrs: Annotated[
        str | None, typer.Option(metavar="X,Y,…", help="learning rates; scores choose one for each run")
    ] = None,
    tune_weights: Annotated[
        str | None, typer.Option(metavar="VALIDATOR", help="try a grid of loss weights for plain sums; it chooses: dev")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="runs of each contender on each task")] = 3,
    base: Annotated[
        str | None, typer.Option(metavar="NAME", help="row that others are compared with (the first)")
    ] = None,
    keep_runs: Annotated[bool, typer.Option("--keep-runs", help="keep every run's model and page in DIR/runs")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at a time (one for each core)")] = None,
    ray: Annotated[str | None, typer.Option(metavar="auto|ADDRESS", help="run on a Ray cluster instead")] = None,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Compare methods, target losses and schemes over tasks and seeds; resumable, with tables and a page."""
    from paretoda.bench.request import BenchRequest, describe_bench, plan_bench

    request = BenchRequest(
        suite=suite,
        tasks=split(tasks),
        methods=split(methods),
        target_losses=split(target_losses),
        schemes=split(schemes),
        baselines=split(baselines),
        contender_file=contenders,
        lrs=parse_numbers("--lrs", split(lrs)),
        seeds=seeds,
        base=base,
        settings=read_settings({**settings, "preset": preset}),
        keep=keep_runs,
        judge=tune_weights,
    )
    with Console(quiet=quiet, as_json=json) as console:
        if jobs is not None and ray is not None:
            raise SettingsError("--jobs is for this machine's processes and --ray for a cluster; give one of them")
        planned = plan_bench(request, out, data)
        for sentence in describe_bench(request, planned):
            console.say(sentence)
        _run(console, planned, jobs, ray)
        console.progress.stop()
        _show(console, request, planned)


def _run(console: Console, bench: Bench, jobs: int | None, ray: str | None) -> None:
    """Make the missing runs, in processes of this machine or on a Ray cluster."""
    from paretoda.run.interrupt import InterruptedRunError

    try:
        if ray is None:
            from paretoda.bench.runner import run_local

            run_local(bench, jobs or len(os.sched_getaffinity(0)), console.progress)
        else:
            from paretoda.bench.ray import run_on_ray

            run_on_ray(bench, ray, console.progress)
    except KeyboardInterrupt as stop:
        total = len(bench.specs)
        done = total - len(bench.missing())
        raise InterruptedRunError(f"stopped; {done} of {total} runs are done, the same command continues") from stop


def _show(console: Console, request: BenchRequest, bench: Bench) -> None:
    """Print and write the results; failures come last and decide the exit code."""
    from paretoda.bench.results import write_results

    out = bench.directory
    results = write_results(request, bench, shlex.join(["paretoda", *sys.argv[1:]]))
    for text in (*results.tables, *results.tuned_weights):
        console.result()
        console.result(text)
    console.result()
    console.result(f"tables: {out / 'chosen.md'} (.tex, .csv), {out / 'last.md'}; page: {out / 'report.html'}")
    for sentence in results.failures:
        console.say(sentence)
    failed = len(results.failures)
    console.finish(lambda: {"runs": results.runs, "failed": failed, "report": str(out / "report.html")})
    if failed:
        console.say(f"{failed} of {results.runs} runs failed; the same command tries them again.")
        raise typer.Exit(1)
