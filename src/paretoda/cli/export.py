"""`paretoda export`: the model of a finished run as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preference, Quiet, RunPath, parse_numbers


def export(  # noqa: PLR0913  (options, not arguments)
    run: RunPath,
    *,
    format: Annotated[Literal["onnx", "torch"], typer.Option(help="ONNX, or a program of torch.export")] = "onnx",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="instead of model.onnx or model.pt2 in the RUN")
    ] = None,
    transforms: Annotated[
        bool, typer.Option("--transforms", help="the file takes RGB bytes of any size and resizes them as predict does")
    ] = False,
    refined: Annotated[bool, typer.Option("--refined", help="also give the refined prediction of tcm")] = False,
    preference: Preference = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a run's model as one file that needs no ParetoDA; it is compared with the run before it is written."""
    from paretoda.api import export_run  # noqa: PLC0415  (keeps torch out of `paretoda --help`)

    with Console(quiet=quiet, as_json=json) as console:
        wanted = None if preference is None else list(parse_numbers("--preference", preference.split(",")))
        made = export_run(run, format, out, transforms=transforms, refined=refined, preference=wanted, say=console.say)
        shape = ", ".join(map(str, made.input_shape))
        console.result(f"{made.path}: it differs from the run by {made.difference:.1g} at most.")
        console.result(f"in:  {made.input_name}, {made.input_type} ({shape})")
        console.result(f"out: {', '.join(made.outputs)}")
        console.finish(
            lambda: {
                "out": str(made.path),
                "format": format,
                "input": made.input_name,
                "shape": list(made.input_shape),
                "type": made.input_type,
                "outputs": made.outputs,
                "difference": made.difference,
            }
        )
