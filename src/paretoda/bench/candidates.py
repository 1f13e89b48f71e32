"""The candidates of a benchmark's run: all validators' scores and, where the task measures it, the oracle accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from torch import Tensor

from paretoda.bench.store import Row
from paretoda.data.pair import Pair
from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
from paretoda.evaluation.validators import Validator
from paretoda.run.task import BenchData, Task
from paretoda.types import Snapshot


class CandidateRecorder:
    """Scores every candidate by every validator and by the target's labels, after the run has scored it.

    Nothing of this reaches the run: its choice is made by its own scores. The time that this takes is counted, so that
    it can be left out of the time of the run.

    Args:
        task: Task of the run.
        data: Data of the benchmark's task.
        validators: Validators that the run can be scored by.
    """

    def __init__(
        self, task: Task[Any, Any], data: BenchData, validators: Mapping[str, Callable[[], Validator]]
    ) -> None:
        self._task, self._data, self._validators = task, data, validators
        self._rows: list[Row] = []
        self._predictions: list[Tensor] = []
        self.seconds = 0.0

    def __call__(self, taken: int, snapshot: Snapshot, pair: Pair, known: Mapping[str, float]) -> None:
        """Record a candidate; scores that are known are not computed again."""
        start = perf_counter()
        scores = {name: known[name] if name in known else make()(snapshot) for name, make in self._validators.items()}
        self._rows.append({"step": taken, **self._task.measure_candidate(snapshot, pair, self._data), "scores": scores})
        self._predictions.append(snapshot.target.logits.float().softmax(dim=1).cpu())
        self.seconds += perf_counter() - start

    def rows(self) -> list[Row]:
        """Return one row for each candidate: its step, its scores and the measures of the task."""
        rules = self._task.tables.rules if self._rows else ()
        joint = {name: score(self._predictions) for name, score in JOINT_VALIDATORS.items() if name in rules}
        return [
            {**row, "scores": row["scores"] | {name: values[place] for name, values in joint.items()}}
            for place, row in enumerate(self._rows)
        ]
