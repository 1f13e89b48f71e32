"""The main job as one function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paretoda.run.callbacks import Callbacks, NO_CALLBACKS
from paretoda.run.engine import execute
from paretoda.run.result import Run
from paretoda.run.start import RunRequest
from paretoda.tasks import SEGMENTATION, find_task
from paretoda.training.loop import After


def adapt(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
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
        resume: Continue the run in `out`, with its own settings and, unless they are given, its own data.
        overwrite: Replace a run in `out`.
        after: Hooks, plain callables: `hook(steps_taken, report)` is called after every step.
        callbacks: Functions that hear sentences and progress.
        **settings: Any field of `Settings`: task="segmentation", method="dann", scheme="paretoda", steps=500, seed=0.

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.

    Raises:
        SettingsError: A setting is unknown or does not fit the others.
        DataError: The data cannot be used.
        RunError: The directory cannot be used.

    Example:
        >>> import numpy as np, paretoda
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(60) % 2
        >>> x = rng.normal(size=(60, 4)) + 3 * y[:, None]
        >>> run = paretoda.adapt((x, y), x + 0.5, steps=4, batch_size=16)
        >>> len(run.history), run.predict_proba(x[:3]).shape
        (4, (3, 2))
    """
    folder = None if out is None else Path(out)
    request = RunRequest(source, target, folder, resume, overwrite, settings)
    return execute(request, find_task, after, callbacks)


def segment(source: Any = None, target: Any = None, out: str | Path | None = None, **options: Any) -> Run:
    """Call `adapt` with task="segmentation"."""
    return adapt(source, target, out, task=SEGMENTATION, **options)
