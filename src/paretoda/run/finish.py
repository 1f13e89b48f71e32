"""How a run ends: a model is chosen without labels, compared with source-only, and described in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from paretoda.data import DomainPair
from paretoda.data.segmentation import ScenePair
from paretoda.evaluation.validators import PIXEL_VALIDATORS, VALIDATORS, negative_transfer_warning
from paretoda.run.build import describe_skipped_steps, shift_sentence
from paretoda.run.callbacks import Callbacks
from paretoda.run.settings import Settings, source_only
from paretoda.run.train import Trained, train
from paretoda.tasks.classification.build import make_step
from paretoda.tasks.segmentation.teachers import taught_sentence
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step
from paretoda.types import Snapshot

AnyPredictor = TypeVar("AnyPredictor")


class Data(Protocol[AnyPredictor]):
    """What a run reads, and what it makes of its networks."""

    @property
    def pair(self) -> DomainPair | ScenePair:
        """What is trained on."""
        ...

    @property
    def alone(self) -> bool:
        """Whether there is no target."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the data."""
        ...

    def predictor(self, step: Step) -> AnyPredictor:
        """A copy of the step's present model for new data of the target."""
        ...

    def calibrated(self, predictor: AnyPredictor, snapshot: Snapshot) -> AnyPredictor:
        """The same with the temperature of its confidence, where it can have one."""
        ...

    def for_source(self, predictor: AnyPredictor) -> AnyPredictor:
        """The same for new data of the source."""
        ...


@dataclass(frozen=True, eq=False)
class FinishedRun(Generic[AnyPredictor]):
    """The predictors of a run, and everything else that is known of it.

    Args:
        model: chosen.
        source_model: the same for the source.
        last: after the last step.
        known: the fields of a `RunResult`.
    """

    model: AnyPredictor
    source_model: AnyPredictor
    last: AnyPredictor
    known: dict[str, Any]


def finish_run(
    settings: Settings, data: Data[AnyPredictor], trained: Trained, listeners: Callbacks, path: Path | None
) -> FinishedRun[AnyPredictor]:
    """Choose the model, compare it with source-only, and say in plain words what was found."""
    step, candidates = trained.step, trained.candidates
    last = data.predictor(step)
    choice = candidates.choice()
    sentences = list(data.notes)
    objectives = step.objectives.values()
    for said in (
        describe_skipped_steps(trained.history),
        shift_sentence(objectives, data.pair.classes),
        taught_sentence(objectives),
    ):
        if said is not None:
            sentences.append(said)
            listeners.hear(said)
    index = len(candidates.taken) - 1
    if choice is not None:
        index = choice.index
        sentences.append(choice.sentence)
        listeners.hear(choice.sentence)
        candidates.put_back(index, step)
    snapshot = take_snapshot(data.pair, step.model, step.device, processes=step.processes)
    scores = {} if data.alone else _scores(data.pair, snapshot)
    warning = _compare(settings, data.pair, step, scores, listeners)
    if warning is not None:
        sentences.append(warning)
        listeners.hear(warning)
    model = data.calibrated(data.predictor(step), snapshot)
    known = {
        "settings": settings,
        "classes": data.pair.classes,
        "history": trained.history,
        "scores": scores,
        "candidates": [{"step": t, **s} for t, s in zip(candidates.taken, candidates.scores, strict=True)],
        "chosen": candidates.taken[index],
        "sentences": tuple(sentences),
        "negative_transfer": warning,
        "directory": path,
    }
    return FinishedRun(model, data.for_source(model), last, known)


def _scores(pair: DomainPair | ScenePair, snapshot: Snapshot) -> dict[str, float]:
    table = PIXEL_VALIDATORS if isinstance(pair, ScenePair) else VALIDATORS
    return {name: make()(snapshot) for name, make in table.items()}


def _compare(
    settings: Settings, pair: DomainPair | ScenePair, step: Step, scores: dict[str, float], listeners: Callbacks
) -> str | None:
    """The warning of negative transfer, from a source-only model of the same settings."""
    wanted = settings.reference if settings.reference is not None else pair.kind == "features"
    if not wanted or set(step.objectives) == {"source"}:
        return None
    plain = source_only(settings)
    alone = make_step(plain, pair, step.device, step.processes)
    reference = train(plain, pair, alone, after=listeners.reference).step
    snapshot = take_snapshot(pair, reference.model, reference.device, processes=reference.processes)
    return negative_transfer_warning(scores, _scores(pair, snapshot))
