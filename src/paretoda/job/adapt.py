"""The main job as one function for each task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paretoda.job.beginning import begin
from paretoda.job.build import make_step, pick_device
from paretoda.job.ending import end
from paretoda.job.inputs import open_inputs
from paretoda.job.listeners import SILENT, Listeners
from paretoda.job.memory import notes
from paretoda.job.run import Run, write_results
from paretoda.job.segmentation.inputs import open_scene_inputs
from paretoda.job.segmentation.results import SceneRun, write_scene_results
from paretoda.job.training import train


def adapt(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    listeners: Listeners = SILENT,
    **settings: Any,
) -> Run:
    """Train a classifier for the target from a labelled source and the unlabelled target.

    Args:
        source: an image folder with a sub-folder for each class, a list file, an .npz with x and y, (x, y), a dataset.
        target: the same without labels; labels that are there are not read. The method "source-only" needs none;
            without one nothing is scored or chosen, and the last model is kept.
        out: directory for the run's files; None: nothing is written.
        resume: go on with the run in `out`, with its own settings and, unless given, its own data.
        overwrite: replace a run in `out`.
        listeners: who is told what happens.
        **settings: any field of `Settings`, checked: method="dann", scheme="paretoda", steps=500, seed=0, ...

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.
    """
    run = begin("classification", (source, target), out, (resume, overwrite), settings)
    device = pick_device(run.settings.device)
    inputs = open_inputs(run.settings, run.source, run.target, device, listeners.hear, listeners.told)
    step = make_step(run.settings, inputs.pair, device)
    for note in notes(run.settings, step.model):
        listeners.hear(note)
    run.write()
    trained = train(
        run.settings, inputs.pair, step, directory=run.directory, resume=run.going_on, after=listeners.after
    )
    ended = end(run.settings, inputs, trained, listeners, None if run.directory is None else run.directory.path)
    made = Run(model=ended.model, source_model=ended.source_model, last=ended.last, **ended.known)
    if run.directory is not None:
        write_results(run.directory, made, inputs)
    return made


def segment(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    listeners: Listeners = SILENT,
    **settings: Any,
) -> SceneRun:
    """Train a segmenter for the target from labelled source scenes and unlabelled target images.

    Args:
        source: a data set's folder (GTA5, Cityscapes, SYNTHIA, CamVid), one with images/ and labels/, a list file of
            `image label` lines, an .npz with x and y, or arrays (x, y[, classes]).
        target: the same without labels, or any folder with images; labels that are there are not read.
        out: directory for the run's files; None: nothing is written.
        resume: go on with the run in `out`, with its own settings and, unless given, its own data.
        overwrite: replace a run in `out`.
        listeners: who is told what happens.
        **settings: any field of `Settings`, checked: method="advent", scheme="paretoda", steps=500, seed=0, ...

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.
    """
    run = begin("segmentation", (source, target), out, (resume, overwrite), settings)
    device = pick_device(run.settings.device)
    inputs = open_scene_inputs(run.settings, run.source, run.target, listeners.hear, listeners.told)
    step = make_step(run.settings, inputs.pair, device)
    for note in notes(run.settings, step.model):
        listeners.hear(note)
    run.write()
    keep = None if run.directory is None else run.directory.translation
    inputs = inputs.translated(run.settings, device, keep, listeners.told)
    trained = train(
        run.settings, inputs.pair, step, directory=run.directory, resume=run.going_on, after=listeners.after
    )
    ended = end(run.settings, inputs, trained, listeners, None if run.directory is None else run.directory.path)
    made = SceneRun(model=ended.model, source_model=ended.source_model, last=ended.last, **ended.known)
    if run.directory is not None:
        write_scene_results(run.directory, made, inputs, listeners.told)
    return made
