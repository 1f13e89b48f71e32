"""`paretoda export`: a finished run's model as one file."""

from __future__ import annotations

from pathlib import Path

from paretoda.cli.console import Console
from paretoda.cli.predict import numbers
from paretoda.run.export.export import export_run
from paretoda.run.export.formats import Format


def run_export(
    screen: Console,
    run: Path,
    kind: Format,
    out: Path | None,
    *,
    transforms: bool,
    refined: bool,
    preference: str | None,
) -> None:
    """Write the file, and say what goes in and comes out."""
    wanted = None if preference is None else numbers(preference)
    made = export_run(run, kind, out, transforms=transforms, refined=refined, preference=wanted, say=screen.say)
    shape = ", ".join(map(str, made.input_shape))
    screen.result(f"{made.path}: it differs from the run by {made.difference:.1g} at most.")
    screen.result(f"in:  {made.input_name}, {made.input_type} ({shape})")
    screen.result(f"out: {', '.join(made.outputs)}")
    facts = {"input": made.input_name, "shape": list(made.input_shape), "type": made.input_type}
    screen.finish(
        lambda: {"out": str(made.path), "format": kind, **facts, "outputs": made.outputs, "difference": made.difference}
    )
