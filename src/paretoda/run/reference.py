"""The reference whose scores reveal negative transfer: the same training without adaptation, or the given model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paretoda.core.problem import find_role
from paretoda.evaluation.model_selection import COMPARABLE
from paretoda.run.beside import start_beside
from paretoda.run.build import build_step
from paretoda.run.callbacks import Callbacks
from paretoda.run.settings import Settings, source_only
from paretoda.run.task import AnyInputs, Task
from paretoda.run.train import train
from paretoda.training.loop import After
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step


class Reference:
    """Scores of a source-only model with the same settings; it is trained beside the run where a core is idle.

    Without a source it is the model that the run begins with, and nothing is trained.

    Args:
        task: Task of the run.
        settings: Settings of the run.
        inputs: Data of the run.
        step: Step of the run.
        callbacks: Receive sentences and, unless it is trained beside the run, progress.

    Attributes:
        doubts: Once the scores are known: what it says against equal classes in source and target.
    """

    def __init__(
        self, task: Task[AnyInputs, Any], settings: Settings, inputs: AnyInputs, step: Step, callbacks: Callbacks
    ) -> None:
        self._task, self._inputs, self._callbacks = task, inputs, callbacks
        self._given = settings.from_run is not None
        self.doubts: Sequence[str] = ()
        self._settings, self._step = settings if self._given else source_only(settings), step
        cheap = self._given or inputs.pair.kind == "features"
        asked = cheap if settings.reference is None else settings.reference
        adapts = any(find_role(name) != "source" for name in step.objectives)
        comparable = not set(COMPARABLE).isdisjoint(task.tables.validators)
        self._wanted = asked and comparable and inputs.has_target and adapts
        alone = step.processes.size == 1
        self._beside = start_beside(self._train, step.device) if self._wanted and alone else None

    @property
    def name(self) -> str:
        """What sentences call the reference."""
        return "the model that the run began with" if self._given else "the source-only model"

    def scores(self) -> dict[str, float] | None:
        """Return the scores that two models can be compared by; None where no reference is wanted."""
        if not self._wanted:
            return None
        found = self._train(self._callbacks.reference) if self._beside is None else self._beside.result()
        scores, sentences, self.doubts = found
        for sentence in [*sentences, *self.doubts]:
            self._callbacks.notify(sentence)
        return scores

    def stop(self) -> None:
        """End the training beside the run, if there is one."""
        if self._beside is not None:
            self._beside.stop()

    def _train(self, after: Sequence[After] = ()) -> tuple[dict[str, float], list[str], list[str]]:
        sentences: list[str] = []
        pair, validators = self._inputs.pair, self._task.tables.validators
        step = build_step(self._task, self._settings, pair, self._step.device, self._step.processes)
        if not self._given:
            step = train(self._settings, pair, step, after=after, say=sentences.append, validators=validators).step
        snapshot = take_snapshot(pair, step.model, step.device, processes=step.processes)
        scores = {name: validators[name]()(snapshot) for name in COMPARABLE if name in validators}
        return scores, sentences, [] if self._given else [*self._task.doubt(snapshot, pair.classes)]
