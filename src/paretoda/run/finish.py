"""How a run ends: the model is chosen without labels, compared with source-only, described, and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paretoda.evaluation.model_selection import Choice
from paretoda.evaluation.target_labels import TargetLikelihood
from paretoda.evaluation.validators import WITH_SOURCE, Validator, negative_transfer_warning
from paretoda.io.files import write_json, write_text
from paretoda.report.card import render_model_card
from paretoda.report.facts import RunFacts
from paretoda.report.page import render_run_page
from paretoda.run.build import describe_label_shift, describe_skipped_steps
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import metrics_table
from paretoda.run.reference import Reference
from paretoda.run.result import Run, read_facts
from paretoda.run.settings import LABELS, Settings, settings_of_others
from paretoda.run.task import AnyInputs, AnyPredictor, Conclusion, Task
from paretoda.run.train import Trained
from paretoda.training.snapshot import take_snapshot
from paretoda.types import Snapshot

_MEMBERS = "{} networks predict together, by the mean of their probabilities; the curves of the report are their means."


def finish_run(
    task: Task[AnyInputs, AnyPredictor],
    settings: Settings,
    inputs: AnyInputs,
    trained: Trained,
    reference: Reference,
    callbacks: Callbacks,
    path: Path | None,
) -> Run:
    """Choose the model, compare it with source-only, and say in plain words what was found.

    Args:
        task: Task of the run.
        settings: Settings of the run.
        inputs: Data of the run.
        trained: Result of the training.
        reference: Source-only model that the chosen one is compared with.
        callbacks: Receive the sentences.
        path: Directory of the run; None: nothing is written.
    """
    step, candidates, pair = trained.step, trained.candidates, inputs.pair
    last = _last_predictor(task, settings, inputs, trained)
    choice = candidates.choice()
    sentences = _describe_training(task, trained, pair.classes, choice)
    for sentence in sentences:
        callbacks.notify(sentence)
    index = len(candidates.taken) - 1 if choice is None else choice.index
    snapshot = _final_snapshot(trained, index)
    rows = candidates.rows()
    scores = _score(choose_validators(task, settings), snapshot, rows[index]) if inputs.has_target else {}
    others = reference.scores()
    sentences += reference.doubts
    warning = None if others is None else negative_transfer_warning(scores, others, reference.name)
    if warning is not None:
        sentences.append(warning)
        callbacks.notify(warning)
    model = task.predictor(step, inputs)
    if settings.from_run is None:  # calibration reads labels of the source
        model = task.calibrate(model, snapshot)
    found = task.conclude(settings, step, model, snapshot) if inputs.has_target else Conclusion(model)
    model = found.predictor
    for sentence in found.sentences:
        callbacks.notify(sentence)
    return Run(
        settings=settings,
        classes=pair.classes,
        model=model,
        source_models=task.for_sources(model, inputs),
        last=last,
        history=trained.history,
        scores=scores,
        candidates=[{"step": taken, **row} for taken, row in zip(candidates.taken, rows, strict=True)],
        chosen=candidates.taken[index],
        sentences=(*inputs.notes, *sentences, *found.sentences),
        negative_transfer=warning,
        directory=path,
        label_sets=found.facts,
    )


def _last_predictor(
    task: Task[AnyInputs, AnyPredictor], settings: Settings, inputs: AnyInputs, trained: Trained
) -> AnyPredictor:
    """Return the predictor after the last step, with its own threshold where it knows unknown samples."""
    last = task.predictor(trained.step, inputs)
    if settings.label_sets != "open":
        return last
    return task.conclude(settings, trained.step, last, trained.snapshots.after(settings.steps)).predictor


def _describe_training(
    task: Task[Any, Any], trained: Trained, classes: tuple[str, ...], choice: Choice | None
) -> list[str]:
    """Return what the user should know about the training and the choice of the model."""
    objectives = trained.step.objectives.values()
    members = len(trained.step.members)
    found = [
        None if members == 1 else _MEMBERS.format(members),
        describe_skipped_steps(trained.history),
        describe_label_shift(objectives, classes),
        *task.describe_objectives(objectives),
        None if choice is None else choice.sentence,
    ]
    return [sentence for sentence in found if sentence is not None]


def _final_snapshot(trained: Trained, index: int) -> Snapshot:
    """Put the chosen candidate back and return its snapshot; the last candidate is still there, and so is its own."""
    step, candidates = trained.step, trained.candidates
    if index == len(candidates.taken) - 1:
        return trained.snapshots.after(candidates.taken[index])
    candidates.put_back(index, step)
    return take_snapshot(trained.snapshots.pair, step.model, step.device, processes=step.processes)


def choose_validators(task: Task[Any, Any], settings: Settings) -> Mapping[str, Callable[[], Validator]]:
    """Return the task's validators: without a source those that read none, with the rule "labels" that as well."""
    found = dict(task.tables.validators)
    if settings.from_run is not None:
        found = {name: found[name] for name in found if name not in WITH_SOURCE}
    return {**found, LABELS: TargetLikelihood} if settings.selects_by_labels else found


def _score(
    validators: Mapping[str, Callable[[], Validator]], snapshot: Snapshot, known: Mapping[str, float]
) -> dict[str, float]:
    """Return the score of every validator; those that are known of this model are not computed again.

    A validator that scores all candidates together is among them where the choice needed it.
    """
    own = {name: known[name] if name in known else make()(snapshot) for name, make in validators.items()}
    return {**own, **known}


def write_results(
    task: Task[AnyInputs, Any], directory: RunDirectory, run: Run, inputs: AnyInputs, callbacks: Callbacks
) -> None:
    """Write predictions, results, page and card first and the model last: where it is, everything is there.

    Args:
        task: Task of the run.
        directory: Directory of the run.
        run: A finished run.
        inputs: Data of the run.
        callbacks: Receive the progress.
    """
    task.write_predictions(directory, run, inputs, callbacks)
    write_text(directory.table, metrics_table(run.history))
    write_json(directory.results, run.summary())
    facts = read_facts(directory)  # from the files, so that `paretoda report` makes the same page of them
    write_text(directory.report, render_run_page(add_pictures(task, facts, run.model, inputs)))
    read = {name: value for name, value in facts.settings.items() if name not in settings_of_others(task.name)}
    write_text(directory.card, render_model_card(replace(facts, settings=read), task.card(run.model)))
    run.model.save(directory.model, directory.description)
    directory.tidy()


def add_pictures(
    task: Task[AnyInputs, AnyPredictor], facts: RunFacts, predictor: AnyPredictor, inputs: AnyInputs | None
) -> RunFacts:
    """Add to the facts of a run what only its model and data can show."""
    return replace(facts, pictures=task.pictures(predictor, inputs, facts), classes_title=task.classes_title)
