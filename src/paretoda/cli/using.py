"""The commands that use a finished run: predict, evaluate, export; each imports its work when it is called."""

# Imports inside commands keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from pathlib import Path
from typing import Annotated, Literal

import typer

from paretoda.cli.options import Json, Quiet

Crops = Annotated[
    int | None, typer.Option(metavar="1|10", help="of each image; the prediction is their mean (default: the run's)")
]
Refined = Annotated[bool, typer.Option("--refined", help="use the refined prediction of a model trained with tcm")]
Preference = Annotated[
    str | None, typer.Option(metavar="X,Y,…", help="what each loss counts, for a run of the scheme 'hypernetwork'")
]
Calibrated = Annotated[
    bool, typer.Option("--calibrated", help="divide logits by the run's temperature: other confidences, same classes")
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="P", help="no answer where the confidence, calibrated if it can be, is below P"),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="leave out images that cannot be read, with a warning")]
Others = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="RUN", help="another finished run; the mean of all predicts (may be repeated)"),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="directory of a finished run")]


def predict(  # noqa: PLR0913  (options, not arguments)
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="INPUT", help="target data without labels")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="instead of stdout; of segmentation, a folder for pictures")
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
    from paretoda.cli.console import Console
    from paretoda.cli.predict import PredictOptions, run_predict

    with Console(quiet=quiet, as_json=json) as screen:
        ask = PredictOptions(refined, crops, preference, skip_bad, calibrated, abstain_below, tuple(others or ()))
        run_predict(screen, run, data, out, ask)


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
        str | None, typer.Option(metavar="NAME", help="segmentation: of the label files (`paretoda list tables`)")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="segmentation: the mean IoU is over these alone")
    ] = None,
    json: Json = False,
) -> None:
    """Measure a run on labelled target data; labels are matched by class name."""
    from paretoda.cli.console import Console
    from paretoda.cli.evaluate import run_evaluate
    from paretoda.cli.predict import PredictOptions

    with Console(as_json=json) as screen:
        ask = PredictOptions(
            refined, crops, preference, skip_bad, calibrated, abstain_below, tuple(others or ()), table, classes
        )
        run_evaluate(screen, run, data, ask)


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
    from paretoda.cli.console import Console
    from paretoda.cli.export import run_export

    with Console(quiet=quiet, as_json=json) as screen:
        run_export(screen, run, format, out, transforms=transforms, refined=refined, preference=preference)
