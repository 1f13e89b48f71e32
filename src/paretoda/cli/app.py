"""The commands and their options; each imports its work when it is called."""

# Imports inside commands keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from paretoda import __version__
from paretoda.cli.comparing import bench, report, study
from paretoda.cli.options import Json, Preset, Quiet, given_settings, with_settings
from paretoda.cli.several import rank, several
from paretoda.cli.using import SkipBad, evaluate, export, predict
from paretoda.io.limits import PIXELS, UNPACKED

_TRUSTED = "PARETODA_TRUST_MODULE"  # paretoda.models.backbones.user_module.TRUSTED, which would import torch

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A model that works on unlabelled target data, from labelled source data of another place.",
    epilog="DATA is an image folder, a list file of `path label` lines, or an .npz with x and optionally y, classes.",
)

Task = Annotated[Literal["classification", "segmentation"], typer.Option(help="what is predicted: images or pixels")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"paretoda {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  (its callback acts)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print it")
    ] = False,
    max_image_pixels: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="of an image; more is taken for an attack (89478485)")
    ] = None,
    max_unpacked_bytes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="of a packed array; more, out of little, is taken for an attack (4 GiB)"),
    ] = None,
    trust_module: Annotated[
        str | None,
        typer.Option(metavar="PACKAGE.FACTORY", help="your own code, which a run names as its backbone, may be run"),
    ] = None,
) -> None:
    """A model that works on unlabelled target data, from labelled source data of another place."""
    command = context.invoked_subcommand
    if several() and command not in (None, "adapt"):
        raise typer.BadParameter(f"{command} is for one process; start it without torchrun")
    for name, limit in ((PIXELS, max_image_pixels), (UNPACKED, max_unpacked_bytes)):
        if limit is not None:
            os.environ[name] = str(limit)  # so that processes that are started know it, too
    if trust_module is not None:
        os.environ[_TRUSTED] = trust_module


@app.command()
@with_settings()
def adapt(  # noqa: PLR0913  (options, not arguments)
    *,
    source: Annotated[str | None, typer.Option(metavar="DATA", help="labelled data")] = None,
    target: Annotated[str | None, typer.Option(metavar="DATA", help="unlabelled data; labels are not read")] = None,
    out: Annotated[Path, typer.Option(metavar="RUN", help="directory for the run")],
    config: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="settings, below the command line's")] = None,
    preset: Preset = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the run in --out")] = False,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train a model for the target; its labels, if it has any, are never read."""
    from paretoda.cli.adapt import merged, run_adapt
    from paretoda.cli.console import Console

    values = merged(config, {"source": source, "target": target}, given_settings({**settings, "preset": preset}))
    silent = rank() > 0
    with Console(quiet=quiet or silent, as_json=json and not silent) as screen:
        run_adapt(screen, values, out, resume=resume, overwrite=overwrite)


app.command()(predict)
app.command()(evaluate)
app.command()(export)


@app.command()
def doctor(  # noqa: PLR0913  (options, not arguments)
    path: Annotated[
        Path | None, typer.Argument(metavar="[PATH]", help="with --suite: its folder (default $PARETODA_DATA)")
    ] = None,
    *,
    source: Annotated[str | None, typer.Option(metavar="DATA", help="labelled data")] = None,
    target: Annotated[str | None, typer.Option(metavar="DATA", help="unlabelled data")] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="NAME", help="compare PATH with office31, office-home or visda2017")
    ] = None,
    task: Task = "classification",
    source_table: Annotated[
        str | None, typer.Option(metavar="NAME", help="segmentation: of the source's labels (`paretoda list tables`)")
    ] = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Find out what is wrong with the data, before an hour is lost; exit code 2 where adapt would refuse them.

    With --suite: whether a copy of a benchmark has the images that the published numbers were measured on.
    """
    from paretoda.cli.console import Console
    from paretoda.cli.doctor import run_doctor

    with Console(as_json=json) as screen:
        code = run_doctor(screen, source, target, suite, path, task=task, source_table=source_table, skip_bad=skip_bad)
    raise typer.Exit(code)


@app.command("list")
def list_names(
    what: Annotated[
        Literal[
            "methods",
            "schemes",
            "target-losses",
            "guides",
            "validators",
            "backbones",
            "suites",
            "baselines",
            "presets",
            "tables",
        ],
        typer.Argument(),
    ],
    task: Task = "classification",
    json: Json = False,
) -> None:
    """Show the names that an option takes."""
    from paretoda.cli.console import Console
    from paretoda.cli.list import run_list

    with Console(as_json=json) as screen:
        run_list(screen, what, task)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="for report.html and results.json")] = Path("paretoda-demo"),
    seeds: Annotated[int, typer.Option(min=1, help="runs of each method")] = 3,
    steps: Annotated[int | None, typer.Option(min=5, help="of each run [default: 100]")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Printed digits to real handwriting, without any data of yours: a table and a report in about a minute."""
    from paretoda.cli.console import Console
    from paretoda.cli.demo import run_demo

    with Console(quiet=quiet, as_json=json) as screen:
        run_demo(screen, out, seeds=seeds, steps=steps)


for _command in (bench, study, report):
    app.command()(_command)
