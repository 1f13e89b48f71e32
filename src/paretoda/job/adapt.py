"""The main job as one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paretoda.data import DomainPair
from paretoda.evaluation.validators import VALIDATORS, negative_transfer_warning
from paretoda.job.build import make_step, pick_device
from paretoda.job.directory import RunDirectory, RunError
from paretoda.job.frozen import Told
from paretoda.job.inputs import Inputs, open_inputs
from paretoda.job.run import Run, write_results
from paretoda.job.settings import Settings, SettingsError, make_settings, source_only
from paretoda.job.training import Trained, train
from paretoda.training.loop import After
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step


@dataclass(frozen=True, eq=False)
class Listeners:
    """Who is told what happens.

    Args:
        say: sentences for the user, as they come up.
        told: progress of long jobs other than training.
        after: called after every step.
        reference: called after every step of the source-only reference.
    """

    say: Callable[[str], None] | None = None
    told: Told | None = None
    after: Sequence[After] = ()
    reference: Sequence[After] = ()


_SILENT = Listeners()


def adapt(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    listeners: Listeners = _SILENT,
    **settings: Any,
) -> Run:
    """Train a model for the target from a labelled source and the unlabelled target.

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
    directory = RunDirectory(Path(out)) if out is not None else None
    if resume:
        if directory is None:
            raise RunError("resume needs the directory of the run: give out")
        if settings:
            raise SettingsError(f"a resumed run keeps its settings; leave out {', '.join(settings)}")
        chosen, inputs = directory.read_config()
        if directory.model.exists():
            raise RunError(f"the run in {directory.path} is finished; use it, or begin anew with --overwrite")
        source = inputs.get("source") if source is None else source
        target = inputs.get("target") if target is None else target
    else:
        chosen = make_settings(settings)
        if directory is not None:
            directory.check_free(overwrite=overwrite)
    if source is None or (target is None and (chosen.method, chosen.target_loss) != ("source-only", "none")):
        raise SettingsError("give a source and a target; only the method 'source-only' needs no target")
    if target is None:
        chosen = source_only(chosen)
    return _run(chosen, source, target, directory, resume, listeners)


def _run(
    settings: Settings, source: Any, target: Any, directory: RunDirectory | None, resume: bool, listeners: Listeners
) -> Run:
    device = pick_device(settings.device)
    inputs = open_inputs(settings, source, target, device, partial(_say, listeners), listeners.told)
    step = make_step(settings, inputs.pair, device)
    if directory is not None and not resume:
        given = {"source": source} if inputs.alone else {"source": source, "target": target}
        directory.begin(settings, {domain: _path(what) for domain, what in given.items()})
    going_on = resume and directory is not None and directory.checkpoint.exists()
    trained = train(settings, inputs.pair, step, directory=directory, resume=going_on, after=listeners.after)
    run = _finish(settings, inputs, trained, listeners, directory)
    if directory is not None:
        write_results(directory, run, inputs)
    return run


def _path(what: Any) -> str:
    return str(Path(what).expanduser().resolve()) if isinstance(what, (str, Path)) else type(what).__name__


def _say(listeners: Listeners, sentence: str) -> None:
    if listeners.say is not None:
        listeners.say(sentence)


def _finish(
    settings: Settings, inputs: Inputs, trained: Trained, listeners: Listeners, directory: RunDirectory | None
) -> Run:
    """Choose the model, compare it with source-only, and say in plain words what was found."""
    step, candidates = trained.step, trained.candidates
    last = inputs.predictor(step)
    choice = candidates.choice()
    sentences = list(inputs.raw.notes)
    index = len(candidates.taken) - 1
    if choice is not None:
        index = choice.index
        sentences.append(choice.sentence)
        _say(listeners, choice.sentence)
        candidates.put_back(index, step)
    scores = {} if inputs.alone else _scores(inputs.pair, step)
    warning = _compare(settings, inputs.pair, step, scores, listeners)
    if warning is not None:
        sentences.append(warning)
        _say(listeners, warning)
    model = inputs.predictor(step)
    return Run(
        settings=settings,
        model=model,
        source_model=inputs.for_source(model),
        last=last,
        history=trained.history,
        scores=scores,
        candidates=[{"step": t, **s} for t, s in zip(candidates.taken, candidates.scores, strict=True)],
        chosen=candidates.taken[index],
        sentences=tuple(sentences),
        negative_transfer=warning,
        directory=None if directory is None else directory.path,
    )


def _scores(pair: DomainPair, step: Step) -> dict[str, float]:
    snapshot = take_snapshot(pair, step.model, step.device)
    return {name: make()(snapshot) for name, make in VALIDATORS.items()}


def _compare(
    settings: Settings, pair: DomainPair, step: Step, scores: dict[str, float], listeners: Listeners
) -> str | None:
    """The warning of negative transfer, from a source-only model of the same settings."""
    wanted = settings.reference if settings.reference is not None else pair.kind == "features"
    if not wanted or set(step.objectives) == {"source"}:
        return None
    plain = source_only(settings)
    reference = train(plain, pair, make_step(plain, pair, step.device), after=listeners.reference)
    return negative_transfer_warning(scores, _scores(pair, reference.step))
