"""The commands that compare: bench, study, report; each imports its work when it is called."""

# Imports inside commands keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from paretoda.cli.options import Json, Preset, Quiet, given_settings, split, with_settings


@with_settings(leave_out=("method", "target_loss", "scheme", "lr", "seed", "reference"))
def bench(  # noqa: PLR0913  (options, not arguments)
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="tasks (`paretoda list suites`)")],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="results; a bench that was stopped goes on here")],
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="the suite's files ($PARETODA_DATA)")] = None,
    tasks: Annotated[str | None, typer.Option(metavar="A,B,…", help="only these")] = None,
    methods: Annotated[str | None, typer.Option(metavar="A,B,…", help="(default source-only,dann)")] = None,
    target_losses: Annotated[str | None, typer.Option(metavar="A,B,…", help="(default none,tcm)")] = None,
    schemes: Annotated[str | None, typer.Option(metavar="A,B,…", help="(default linear,paretoda)")] = None,
    baselines: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="shallow ones (`paretoda list baselines`)")
    ] = None,
    contenders: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml|paper", help="a table of settings a row, or the paper's rows"),
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
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="leave every run's model and page in DIR/runs")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at a time (one for each core)")] = None,
    ray: Annotated[str | None, typer.Option(metavar="auto|ADDRESS", help="run on a Ray cluster instead")] = None,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Compare methods, target losses and schemes over tasks and seeds; resumable, with tables and a page."""
    from paretoda.cli.bench import BenchOptions, numbers, run_bench
    from paretoda.cli.console import Console

    wanted = BenchOptions(
        suite=suite,
        tasks=split(tasks),
        methods=split(methods),
        target_losses=split(target_losses),
        schemes=split(schemes),
        baselines=split(baselines),
        contenders=contenders,
        lrs=numbers(split(lrs)),
        seeds=seeds,
        base=base,
        settings=given_settings({**settings, "preset": preset}),
        keep=keep_runs,
        judge=tune_weights,
    )
    with Console(quiet=quiet, as_json=json) as screen:
        run_bench(screen, wanted, out, data=data, jobs=jobs, ray=ray)


def study(  # noqa: PLR0913  (options, not arguments)
    name: Annotated[
        Literal["ablation", "path", "scales", "backbones", "front", "guides"],
        typer.Argument(metavar="STUDY", help="ablation, path, scales, backbones, front or guides"),
    ],
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="of tasks")] = "office-caltech10",
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="results; a study that was stopped goes on here")],
    task: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="name or names (W-A; guides: A-C,C-A,W-A; else the first)")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="runs of each kind")] = 3,
    steps: Annotated[int | None, typer.Option(min=5, help="of each run (500; front: 300)")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at a time (one for each core)")] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="the suite's files ($PARETODA_DATA)")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Why it works, or does not: the paper's analyses and ours, with target labels as an oracle; resumable."""
    from paretoda.cli.console import Console
    from paretoda.cli.study import run_study

    with Console(quiet=quiet, as_json=json) as screen:
        run_study(screen, name, suite, out, task=task, seeds=seeds, steps=steps, jobs=jobs, data=data)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN|DIR…", help="directories of runs, or of a bench")],
    labelled: Annotated[
        str | None, typer.Option(metavar="DATA", help="target data with labels: oracle numbers")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="instead of report.html in the RUN")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="of the page")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page: of a run, of several runs side by side, or of a bench."""
    from paretoda.cli.console import Console
    from paretoda.cli.report import run_report

    with Console(quiet=quiet, as_json=json) as screen:
        run_report(screen, runs, labelled, out, title)
