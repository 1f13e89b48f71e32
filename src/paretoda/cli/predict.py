"""`paretoda predict`: a finished run on new data."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Preference, Quiet, RunPath, SkipBad, parse_numbers

if TYPE_CHECKING:
    from paretoda.run.callbacks import Callbacks
    from paretoda.run.task import Outcome, PredictOptions

Crops = Annotated[
    int | None,
    typer.Option(metavar="1|10", help="crops of each image, whose mean is the prediction (default: the run's)"),
]
Refined = Annotated[bool, typer.Option("--refined", help="use the refined prediction of a model trained with tcm")]
Calibrated = Annotated[
    bool, typer.Option("--calibrated", help="divide logits by the run's temperature: other confidences, same classes")
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="P", help="no answer if the confidence, calibrated if possible, is below P"),
]
Others = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="RUN", help="another finished run; the mean of all is used (may be repeated)"),
]


def predict(  # noqa: PLR0913  (options, not arguments)
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="INPUT", help="target data without labels")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="instead of stdout; for segmentation, a folder for pictures")
    ] = None,
    others: Others = None,
    refined: Refined = False,
    calibrated: Calibrated = False,
    abstain_below: AbstainBelow = None,
    crops: Crops = None,
    preference: Preference = None,
    skip_bad: SkipBad = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the classes of new target data, as CSV; of a segmentation run, label maps and overlays as PNG."""
    from paretoda.run.task import PredictOptions

    with Console(quiet=quiet, as_json=json) as console:
        options = PredictOptions(refined, crops, read_preference(preference), skip_bad, calibrated, abstain_below)
        task, predictor, options = load_predictor([run, *(others or ())], options)
        show_outcome(console, task.predict_data(predictor, data, out, options, console_callbacks(console)))


def read_preference(preference: str | None) -> tuple[float, ...] | None:
    """Return the numbers behind --preference; None without any."""
    return None if preference is None else parse_numbers("--preference", preference.split(","))


def load_predictor(runs: Sequence[Path], options: PredictOptions) -> tuple[Any, Any, PredictOptions]:
    """Load the mean of several runs with the user's options.

    Args:
        runs: Directories of finished runs.
        options: Options of the user.

    Returns:
        The task of the runs, the predictor, and the options with the number of runs.
    """
    from dataclasses import replace

    from paretoda.run.build import pick_device
    from paretoda.tasks.loading import load_ensemble

    options = replace(options, runs=len(runs))
    task, predictor = load_ensemble(runs, pick_device("auto"))
    return task, task.apply_options(predictor, options), options


def console_callbacks(console: Console) -> Callbacks:
    """Return callbacks that print sentences and progress."""
    from paretoda.run.callbacks import Callbacks

    return Callbacks(say=console.say, progress=console.progress)


def show_outcome(console: Console, outcome: Outcome) -> None:
    """Print what a command has predicted or measured."""
    console.progress.stop()
    if outcome.raw is not None:
        console.raw(outcome.raw)
    for line in outcome.lines:
        console.result(line)
    if outcome.rows:
        console.result()
        console.table(dict(outcome.columns), [list(row) for row in outcome.rows])
    if outcome.after:
        console.result()
    for line in outcome.after:
        console.result(line)
    console.finish(outcome.values)
