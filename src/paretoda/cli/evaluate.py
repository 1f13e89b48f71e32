"""`paretoda evaluate`: a finished run on new data whose labels are known."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from typing import Annotated

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preference, RunPath, SkipBad, split
from paretoda.cli.predict import (
    AbstainBelow,
    Calibrated,
    Crops,
    Others,
    Refined,
    console_callbacks,
    load_predictor,
    read_preference,
    show_outcome,
)


def evaluate(  # noqa: PLR0913  (options, not arguments)
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="LABELLED", help="target data with labels")],
    *,
    others: Others = None,
    refined: Refined = False,
    calibrated: Calibrated = False,
    abstain_below: AbstainBelow = None,
    crops: Crops = None,
    preference: Preference = None,
    skip_bad: SkipBad = False,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="segmentation: table of the label files (`paretoda list tables`)")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="segmentation: classes of the mean IoU (default: all)")
    ] = None,
    json: Json = False,
) -> None:
    """Measure a run on labelled target data; labels are matched by class name."""
    from paretoda.run.task import PredictOptions

    with Console(as_json=json) as console:
        options = PredictOptions(
            refined,
            crops,
            read_preference(preference),
            skip_bad,
            calibrated,
            abstain_below,
            table,
            None if classes is None else split(classes),
        )
        task, predictor, options = load_predictor([run, *(others or ())], options)
        show_outcome(console, task.evaluate_data(predictor, data, options, console_callbacks(console)))
