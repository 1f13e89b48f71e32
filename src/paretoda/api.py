"""The main jobs as functions: train a run, and export its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paretoda.errors import RunError
from paretoda.run.build import pick_device
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.engine import execute
from paretoda.run.export.formats import Exported, Format, export_program
from paretoda.run.result import Run
from paretoda.run.start import RunRequest
from paretoda.run.task import PredictOptions
from paretoda.tasks import SEGMENTATION, find_task
from paretoda.tasks.loading import load_run
from paretoda.tasks.settings import make_settings
from paretoda.training.loop import After


def adapt(  # noqa: PLR0913 - the inputs and circumstances of a run; all but two have defaults
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    target_labels: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    after: Sequence[After] = (),
    callbacks: Callbacks = NO_CALLBACKS,
    **settings: Any,
) -> Run:
    """Train a model for the target from a labelled source and the unlabelled target.

    Args:
        source: An image folder with a sub-folder for each class, a list file, an .npz file with x and y, arrays (x, y),
            or a dataset. For segmentation: a data set's folder (GTA5, Cityscapes, SYNTHIA, CamVid), a folder with
            images/ and labels/, a list file of `image label` lines, an .npz file with x and y, or arrays
            (x, y[, classes]).
        target: The same without labels; labels that are there are not read. The method "source-only" needs no target;
            without one nothing is scored or chosen, and the last model is kept.
        out: Directory for the run's files; None: nothing is written.
        target_labels: The few target samples whose labels are known, in any form that a source may have; they train
            unless guide="labels", and their classes are among the source's. Classification only.
        resume: Continue the run in `out`, with its own settings and, unless they are given, its own data.
        overwrite: Replace a run in `out`.
        after: Hooks, plain callables: `hook(steps_taken, report)` is called after every step.
        callbacks: Functions that receive sentences and progress.
        **settings: Any field of `Settings`: task="segmentation", method="dann", scheme="paretoda", steps=500, seed=0.

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.

    Raises:
        SettingsError: A setting is unknown or does not fit the others.
        DataError: The data cannot be used.
        RunError: The directory cannot be used.
        NonFiniteError: A loss, a gradient or a parameter has become NaN or infinite.
        InterruptedRunError: Ctrl-C or SIGTERM; the run can be resumed.

    Example:
        >>> import numpy as np, paretoda
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(60) % 2
        >>> x = rng.normal(size=(60, 4)) + 3 * y[:, None]
        >>> run = paretoda.adapt((x, y), x + 0.5, steps=4, batch_size=16)
        >>> len(run.history), run.predict_proba(x[:3]).shape
        (4, (3, 2))
    """
    request = RunRequest(
        source=source,
        target=target,
        target_labels=target_labels,
        out=None if out is None else Path(out),
        resume=resume,
        overwrite=overwrite,
        settings=settings,
    )
    return execute(request, make_settings, find_task, after, callbacks)


def segment(source: Any = None, target: Any = None, out: str | Path | None = None, **options: Any) -> Run:
    """Call `adapt` with task="segmentation"."""
    return adapt(source, target, out, task=SEGMENTATION, **options)


def export_run(
    run: str | Path,
    kind: Format = "onnx",
    out: str | Path | None = None,
    *,
    transforms: bool = False,
    refined: bool = False,
    preference: Sequence[float] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Exported:
    """Write the model of a finished run as one file, after it was compared with the run.

    Args:
        run: Directory of a finished run.
        kind: "onnx", or "torch" for a program of torch.export.
        out: Path of the file; None: model.onnx or model.pt2 in the run.
        transforms: Whether the file takes RGB bytes of any size and resizes them itself.
        refined: Whether the refined predictions of a run with "tcm" are an output as well.
        preference: Weight of each loss, for a run of the scheme "hypernetwork".
        say: Called with what the user should know.

    Returns:
        What was written.

    Raises:
        RunError: The run cannot be exported, or the file differs from the run.
    """
    directory = RunDirectory(Path(run))
    path = directory.exported[kind] if out is None else Path(out)
    if path.is_dir():
        raise RunError(f"{path} is a directory; give a file with --out")
    task, predictor = load_run(directory.path, pick_device("cpu"))
    options = PredictOptions(preference=None if preference is None else tuple(preference))
    program = task.make_program(task.apply_options(predictor, options), transforms=transforms, refined=refined)
    return export_program(program, kind, path, say)
