"""Candidates for the final model: kept along the way, scored without labels, one of them chosen at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, float32, nn, strided

from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import RunError
from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
from paretoda.evaluation.validators import VALIDATORS, Choice, Validator, choose, split_rule
from paretoda.io.files import atomic_file
from paretoda.run.directory.directory import RunDirectory
from paretoda.training.checkpoint import CheckpointError
from paretoda.training.step import Step
from paretoda.types import Snapshot


@dataclass(eq=False)
class Candidates:
    """States of the networks at some steps, with their scores.

    Only the validators that the rule uses are computed. Those that score all candidates together are computed when the
    choice is made; until then the predictions of every candidate are kept, also in checkpoints.

    Args:
        rule: Rule of selection: "ensemble", a validator's name, several joined by "+", or "last".
        directory: Directory that keeps them; None: they are kept in memory.
        processes: Processes of the run: all know the scores, the first one keeps the states.
        validators: Label-free validators by name.
        taken: Number of steps after which each candidate was taken.
        scores: One row of scores for each candidate.
        predictions: Probabilities of the target by each candidate, shape (n, K), where the rule needs them.
    """

    rule: str
    directory: RunDirectory | None
    processes: Processes = SINGLE_PROCESS
    validators: Mapping[str, Callable[[], Validator]] = field(default_factory=lambda: VALIDATORS)
    taken: list[int] = field(default_factory=list)
    scores: list[dict[str, float]] = field(default_factory=list)
    predictions: list[Tensor] = field(default_factory=list)
    _states: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    @property
    def _single(self) -> list[str]:
        """The validators of the rule that score one candidate by itself."""
        return [name for name in split_rule(self.rule) if name not in JOINT_VALIDATORS]

    @property
    def _joint(self) -> list[str]:
        """The validators of the rule that score all candidates together."""
        return [name for name in split_rule(self.rule) if name in JOINT_VALIDATORS]

    def add(self, taken: int, step: Step, take_snapshot: Callable[[], Snapshot]) -> None:
        """Keep the present state and score it; under the rule "last", only note the step."""
        self.taken.append(taken)
        self.scores.append({})
        if self.rule == "last":
            return
        if self.processes.rank == 0:
            self._keep(taken, step)
        snapshot = take_snapshot()
        self.scores[-1].update({name: self.validators[name]()(snapshot) for name in self._single})
        if self._joint:
            self.predictions.append(snapshot.target.logits.float().softmax(dim=1).cpu())

    def _keep(self, taken: int, step: Step) -> None:
        state = {name: tensor.detach().cpu().clone() for name, tensor in step.predicting_modules().state_dict().items()}
        if self.directory is None:
            self._states[taken] = state
        else:
            with atomic_file(self.directory.candidate(taken)) as file:
                file.write(save_tensors({name: tensor.contiguous() for name, tensor in state.items()}))

    def rows(self) -> list[dict[str, float]]:
        """Return the scores of each candidate, with those that depend on all candidates so far."""
        joint = {name: JOINT_VALIDATORS[name](self.predictions) for name in self._joint}
        return [row | {name: values[place] for name, values in joint.items()} for place, row in enumerate(self.scores)]

    def choice(self) -> Choice | None:
        """Choose the best candidate by the rule; None: the last one."""
        if self.rule == "last":
            return None
        rows = self.rows()
        table = {name: [row[name] for row in rows] for name in split_rule(self.rule)}
        return choose(table, self.rule, [f"step {taken}" for taken in self.taken])

    def put_back(self, index: int, step: Step) -> None:
        """Load the state of a candidate into the step's model and target loss."""
        taken = self.taken[index]
        networks = step.predicting_modules()
        if self.processes.rank == 0:
            self._load(taken, networks)
        self.processes.broadcast(networks.state_dict().values())

    def _load(self, taken: int, networks: nn.ModuleDict) -> None:
        if self.directory is None:
            networks.load_state_dict(self._states[taken])
            return
        try:
            networks.load_state_dict(load_tensors(self._file(taken).read_bytes()))
        except OSError:
            raise
        except Exception as error:  # whatever a damaged file leads to
            raise RunError(
                f"the candidate {self._file(taken)} is damaged; start again with --overwrite, or take --select last"
            ) from error

    def _file(self, taken: int) -> Path:
        assert self.directory is not None
        return self.directory.candidate(taken)

    def to_plain(self) -> dict[str, Any]:
        """Return what a checkpoint stores of the candidates."""
        plain = {"taken": list(self.taken), "scores": [dict(row) for row in self.scores]}
        return plain | ({"predictions": list(self.predictions)} if self._joint else {})

    def restore(self, plain: dict[str, Any]) -> None:
        """Restore what a checkpoint has stored."""
        try:
            taken, scores = [index(step) for step in plain["taken"]], [dict(row) for row in plain["scores"]]
            numbers = [float(row[name]) for row in scores for name in self._single]
            predictions = list(plain["predictions"]) if self._joint else []
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint's candidates are damaged ({error}); use --overwrite") from error
        if len(taken) != len(scores) or len(numbers) != len(self._single) * len(scores):
            raise CheckpointError("the checkpoint's candidates and their scores are not as many; use --overwrite")
        if self._joint and not _are_predictions(predictions, len(taken)):
            raise CheckpointError("the checkpoint's candidates have no valid predictions; use --overwrite")
        self.taken, self.scores, self.predictions = taken, scores, predictions


def _are_predictions(values: list[Any], count: int) -> bool:
    """Return whether these are so many tables of probabilities, all of one shape."""
    tables = [value for value in values if isinstance(value, Tensor) and value.layout == strided]
    if any(table.dtype != float32 or table.dim() != 2 for table in tables):
        return False
    return len(tables) == len(values) == count and len({table.shape for table in tables}) <= 1
