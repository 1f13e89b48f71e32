"""The program: its own options and all commands."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from paretoda import __version__
from paretoda.cli.adapt import adapt
from paretoda.cli.bench import bench
from paretoda.cli.cache import cache
from paretoda.cli.demo import demo
from paretoda.cli.doctor import doctor
from paretoda.cli.errors import is_distributed
from paretoda.cli.evaluate import evaluate
from paretoda.cli.export import export
from paretoda.cli.list import list_names
from paretoda.cli.predict import predict
from paretoda.cli.report import report
from paretoda.cli.study import study
from paretoda.io.limits import PIXELS, UNPACKED

_TRUSTED = "PARETODA_TRUST_MODULE"  # paretoda.models.backbones.user_module.TRUSTED, which would import torch

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train a model for unlabelled target data from labelled source data of another domain.",
    epilog="DATA is an image folder, a list file of `path label` lines, or an .npz with x and optionally y, classes.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"paretoda {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  (its callback acts)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
    max_image_pixels: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="maximum number of pixels of an image; a larger one is refused as an attack (89478485)",
        ),
    ] = None,
    max_unpacked_bytes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="maximum bytes that a small packed array may unpack to; more is refused as an attack (4 GiB)",
        ),
    ] = None,
    trust_module: Annotated[
        str | None,
        typer.Option(metavar="PACKAGE.FACTORY", help="trust your own code that a run names as its backbone"),
    ] = None,
) -> None:
    """Train a model for unlabelled target data from labelled source data of another domain."""
    command = context.invoked_subcommand
    if is_distributed() and command not in (None, "adapt"):
        raise typer.BadParameter(f"{command} is for one process; start it without torchrun")
    for name, limit in ((PIXELS, max_image_pixels), (UNPACKED, max_unpacked_bytes)):
        if limit is not None:
            os.environ[name] = str(limit)  # child processes inherit it
    if trust_module is not None:
        os.environ[_TRUSTED] = trust_module


app.command()(adapt)
app.command()(predict)
app.command()(evaluate)
app.command()(export)
app.command()(doctor)
app.command("list")(list_names)
app.command()(demo)
app.command()(bench)
app.command()(study)
app.command()(report)
app.command()(cache)
