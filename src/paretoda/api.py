"""The main job as one function for each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from paretoda.distributed.collectives import Processes
from paretoda.distributed.process_group import device_of_rank, process_group, run_on_all_ranks
from paretoda.run.build import describe_memory
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.finish import AnyPredictor, Data, FinishedRun, finish_run
from paretoda.run.names import Task
from paretoda.run.start import StartedRun, deterministic, start_run
from paretoda.run.train import train
from paretoda.tasks.classification.build import make_step, pick_device
from paretoda.tasks.classification.inputs import Inputs, open_inputs
from paretoda.tasks.classification.run import Run, write_results
from paretoda.tasks.segmentation.inputs import SceneInputs, open_scene_inputs
from paretoda.tasks.segmentation.predictor import ScenePredictor
from paretoda.tasks.segmentation.run import SceneRun, write_scene_results
from paretoda.tasks.segmentation.teachers import open_teachers, teach
from paretoda.training.loop import After
from paretoda.training.step import Step


def adapt(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    after: Sequence[After] = (),
    listeners: Callbacks = NO_CALLBACKS,
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
        after: hooks, plain callables: `hook(steps_taken, report)` after every step.
        listeners: who is told what else happens.
        **settings: any field of `Settings`, checked: method="dann", scheme="paretoda", steps=500, seed=0, ...

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.
    """
    with _started("classification", (source, target), out, (resume, overwrite), settings) as (run, processes):

        def ready() -> tuple[Inputs, Step]:
            device = pick_device(device_of_rank(run.settings.device, processes))
            inputs = open_inputs(run.settings, run.source, run.target, device, listeners.hear, listeners.told)
            return inputs, make_step(run.settings, inputs.pair, device, processes)

        inputs, step = run_on_all_ranks(processes, ready, first_alone=run.settings.frozen)
        if processes.rank == 0:
            run.write()
        ended = _trained(run, inputs, step, after, listeners)
        made = Run(model=ended.model, source_model=ended.source_model, last=ended.last, **ended.known)
        if run.directory is not None and processes.rank == 0:
            write_results(run.directory, made, inputs)
        return made


def segment(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    after: Sequence[After] = (),
    listeners: Callbacks = NO_CALLBACKS,
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
        after: hooks, plain callables: `hook(steps_taken, report)` after every step.
        listeners: who is told what else happens.
        **settings: any field of `Settings`, checked: method="advent", scheme="paretoda", steps=500, seed=0, ...

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.
    """
    with _started("segmentation", (source, target), out, (resume, overwrite), settings) as (run, processes):

        def ready() -> tuple[SceneInputs, Step, ScenePredictor | None]:
            device = pick_device(device_of_rank(run.settings.device, processes))
            inputs = open_scene_inputs(run.settings, run.source, run.target, listeners.hear, listeners.told)
            # a checkpoint has the teachers' labels
            teachers = None if run.going_on else open_teachers(run.settings, inputs.pair, device)
            return inputs, make_step(run.settings, inputs.pair, device, processes), teachers

        inputs, step, teachers = run_on_all_ranks(processes, ready)
        if processes.rank == 0:
            run.write()
        keep = None if run.directory is None else run.directory.translation
        inputs = inputs.translated(run.settings, step.device, keep, listeners.told)  # several have no translation
        if teachers is not None:
            run_on_all_ranks(processes, lambda: teach(teachers, run.settings, inputs.pair, step, listeners))
        ended = _trained(run, inputs, step, after, listeners)
        made = SceneRun(model=ended.model, source_model=ended.source_model, last=ended.last, **ended.known)
        if run.directory is not None and processes.rank == 0:
            write_scene_results(run.directory, made, inputs, listeners.told)
        return made


@contextmanager
def _started(
    task: Task, inputs: tuple[Any, Any], out: str | Path | None, how: tuple[bool, bool], settings: dict[str, Any]
) -> Iterator[tuple[StartedRun, Processes]]:
    """All processes of the run, which agree that it can begin; the first holds its directory. See `begun`."""
    with process_group() as processes, ExitStack() as open_run:
        beginning = start_run(task, inputs, out, how, settings, first=processes.rank == 0)
        run = run_on_all_ranks(processes, lambda: open_run.enter_context(beginning))
        open_run.enter_context(deterministic(run.settings))
        yield run, processes


def _trained(
    run: StartedRun, inputs: Data[AnyPredictor], step: Step, after: Sequence[After], listeners: Callbacks
) -> FinishedRun[AnyPredictor]:
    """Train, and choose the model."""
    for note in describe_memory(run.settings, step.model):
        listeners.hear(note)
    trained = train(
        run.settings,
        inputs.pair,
        step,
        directory=run.directory,
        resume=run.going_on,
        after=after,
        say=listeners.hear,
    )
    return finish_run(run.settings, inputs, trained, listeners, None if run.directory is None else run.directory.path)
