"""The training of a run: prefetched batches, steps, refreshes, candidates, checkpoints, and resuming after a stop."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType

from paretoda.data.pair import Pair
from paretoda.data.prefetching import prefetch
from paretoda.evaluation.validators import VALIDATORS, Validator
from paretoda.gradients import NonFiniteError, Report
from paretoda.run.callbacks import OnCandidate
from paretoda.run.candidates import Candidates
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import metrics_line
from paretoda.run.interrupt import InterruptedRunError, StopRequest, stop_requests
from paretoda.run.nonfinite import TolerantStep, check_parameters, explain_failure
from paretoda.run.settings import Settings
from paretoda.run.tracking import Tracker, open_tracker
from paretoda.training.checkpoint import CheckpointError, read_checkpoint, restore_step, save_checkpoint
from paretoda.training.loop import After, fit
from paretoda.training.seeding import isolated_rng
from paretoda.training.snapshot import move_batch, pin_batch, take_snapshot
from paretoda.training.step import Step
from paretoda.types import Batch, Snapshot


class Prefetcher:
    """Returns the batch of each step on the model's device; as a context manager, it ends its threads.

    Args:
        pair: Source and target.
        step: The step that reads the batches.
        numbers: Numbers of the steps to come.
        every: A guide is expected at every so many steps; where it was not read ahead, it is read on demand.
    """

    def __init__(self, pair: Pair, step: Step, numbers: range, every: int) -> None:
        self._pair, self._step, self._every = pair, step, every
        self._numbers = iter(numbers)
        self._guided = step.guide is not None
        self._read = prefetch(self._read_ahead, numbers, pair.workers) if pair.workers else None

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._read is not None:
            self._read.close()

    def __call__(self, number: int) -> Batch:
        """Return the batch of a step; steps must be asked for in order."""
        if self._read is None:
            batch = self._batch(number, guide=self._step.wants_guide)
        else:
            if next(self._numbers) != number:
                raise ValueError(f"the batch of step {number} was requested out of order")
            batch = self._as_wanted(next(self._read), number)
        return move_batch(batch, self._step.device)

    def _batch(self, number: int, *, guide: bool) -> Batch:
        """Read this process's share of the batch."""
        return self._pair.batch(number, guide=guide, processes=self._step.processes)

    def _read_ahead(self, number: int) -> Batch:
        guide = self._guided and number % self._every == 0
        return pin_batch(self._batch(number, guide=guide), self._step.device)

    def _as_wanted(self, batch: Batch, number: int) -> Batch:
        """Return exactly what would have been read without threads."""
        if not self._step.wants_guide:
            return replace(batch, guide=None, guide_index=None)
        return batch if batch.guide is not None else self._batch(number, guide=True)


@dataclass(frozen=True, eq=False)
class Trained:
    """Result of the training of a run.

    Args:
        step: The step with its networks after the last step.
        candidates: States along the way and their scores.
        history: One entry for each step.
        snapshots: Snapshots of the model; the last one that was taken is kept.
    """

    step: Step
    candidates: Candidates
    history: list[dict[str, object]]
    snapshots: Snapshots


def train(  # noqa: PLR0913  (keyword options)
    settings: Settings,
    pair: Pair,
    step: Step,
    *,
    directory: RunDirectory | None = None,
    resume: bool = False,
    after: Sequence[After] = (),
    say: Callable[[str], None] = lambda _: None,
    validators: Mapping[str, Callable[[], Validator]] = VALIDATORS,
    on_candidate: OnCandidate | None = None,
) -> Trained:
    """Train from the beginning, or from the last checkpoint.

    Args:
        settings: Settings of the run.
        pair: Source and target.
        step: The step before training.
        directory: Directory for metrics, checkpoints and candidates; None: nothing is written. Of several processes,
            the first one writes and all read.
        resume: Whether to continue from the directory's checkpoint.
        after: Hooks that are called after every step.
        say: Called with sentences about damaged checkpoints and steps that are left out.
        validators: Label-free validators by name, which score the candidates.
        on_candidate: Called for every candidate that is scored.

    Raises:
        NonFiniteError: A loss, a gradient or a parameter is NaN or infinite.
        InterruptedRunError: The user has stopped the run.
        CheckpointError: The checkpoint cannot be used.
    """
    processes = step.processes
    with isolated_rng(step.device), stop_requests(1 if processes.size == 1 else 2) as stop:
        candidates = Candidates(settings.select, directory, processes, validators)
        snapshots = Snapshots(pair, step)
        tolerant = TolerantStep(step, settings.skip_nonfinite, say)
        first = 0
        if resume and directory is not None:
            first = _resume(step, directory, candidates, tolerant, say)
            if first > settings.steps:
                raise CheckpointError(f"the checkpoint is of step {first} and the run has {settings.steps} steps only")
        processes.broadcast(step.modules().state_dict().values())
        history = _history(directory, first, writes=processes.rank == 0)
        try:
            with (
                open_tracker(settings, directory if processes.rank == 0 else None, first) as tracker,
                Prefetcher(pair, step, range(first, settings.steps), settings.held_steps) as batches,
            ):
                keeper = _Keeper(
                    settings, tolerant, directory, candidates, snapshots, tracker, history, stop, on_candidate
                )
                if first == 0 and settings.from_run is not None:
                    keeper.take_candidate(0)  # the given model itself may be the best
                fit(
                    tolerant,
                    batches,
                    steps=settings.steps,
                    first=first,
                    before=_before(settings, step, snapshots),
                    after=[keeper.record, keeper.keep, *after],
                )
        except NonFiniteError as error:
            raise explain_failure(
                error, len(history), settings.steps, tolerant.skipped, resumable=directory is not None
            ) from error
        return Trained(step, candidates, history, snapshots)


@dataclass(eq=False)
class _Keeper:
    """The hooks of a run after every step: metrics, candidates, checkpoints, and the end on request.

    Args:
        settings: Settings of the run.
        tolerant: The step, with the number of steps that were left out.
        directory: Directory of the run; None: nothing is written.
        candidates: Candidates for the final model.
        snapshots: Snapshots that the candidates are scored on.
        tracker: Tracker of the run.
        history: Entries of the steps taken so far.
        stop: Whether the user has asked the run to stop.
        on_candidate: Called for every candidate that is scored; None: nobody wants to know.
    """

    settings: Settings
    tolerant: TolerantStep
    directory: RunDirectory | None
    candidates: Candidates
    snapshots: Snapshots
    tracker: Tracker
    history: list[dict[str, object]]
    stop: StopRequest
    on_candidate: OnCandidate | None = None

    def __post_init__(self) -> None:
        self._step = self.snapshots.step
        self._writes = self._step.processes.rank == 0

    def record(self, taken: int, report: Report) -> None:
        """Record the metrics of a step."""
        line = metrics_line(taken, report)
        self.history.append(line)
        self.tracker.step(line, max(group["lr"] for group in self._step.optimiser.param_groups))
        if self.directory is not None and self._writes:
            self.directory.add_metrics(taken, report)

    def keep(self, taken: int, _report: Report) -> None:
        """Take a candidate and save a checkpoint where they are due; stop where the user has asked for it."""
        settings, step, processes = self.settings, self._step, self._step.processes
        last = taken == settings.steps
        stopped = processes.any(self.stop.made)
        saved = taken % settings.checkpoint_every == 0 or last or stopped
        if saved:
            check_parameters(step, taken, settings.steps)
        if taken % settings.candidate_every == 0 or last:
            self.take_candidate(taken)
        if self.directory is not None and saved:
            # Sums on GPUs may differ in the last bits: all processes continue from the first one's numbers.
            processes.broadcast(step.modules().state_dict().values())
            if self._writes:
                self._save(self.directory, taken)
        if stopped:
            processes.any(True)  # no process leaves before the first one has saved
            raise InterruptedRunError(_explain_resuming(taken, settings.steps, self.directory))

    def take_candidate(self, taken: int) -> None:
        """Take the present model as a candidate."""
        self.candidates.add(taken, self._step, partial(self.snapshots.after, taken))
        scores = self.candidates.scores[-1]
        self.tracker.scores(taken, scores)
        if self.on_candidate is not None and self.settings.select != "last":
            self.on_candidate(taken, self.snapshots.after(taken), self.snapshots.pair, scores)

    def _save(self, directory: RunDirectory, taken: int) -> None:
        directory.sync_metrics()
        self.tracker.flush()
        extra = {**self.candidates.to_plain(), "skipped": self.tolerant.skipped}
        save_checkpoint(directory.checkpoint, self._step, taken, extra)


def _resume(
    step: Step, directory: RunDirectory, candidates: Candidates, tolerant: TolerantStep, say: Callable[[str], None]
) -> int:
    """Restore the checkpoint in every process; return how many steps had been taken."""
    state = read_checkpoint(directory.checkpoint, say)
    first = restore_step(step, state)
    candidates.restore(state["extra"])
    tolerant.skipped = state["extra"].get("skipped", 0)
    if type(tolerant.skipped) is not int or tolerant.skipped < 0:
        raise CheckpointError("the checkpoint does not say how many steps were skipped; start again with --overwrite")
    if len(set(step.processes.gather_numbers(first))) > 1:
        raise CheckpointError(f"the processes read different checkpoints in {directory.path}: put it on a shared disk")
    return first


def _history(directory: RunDirectory | None, first: int, *, writes: bool) -> list[dict[str, object]]:
    """Return the entries of the steps taken so far; the process that writes removes all others from the file."""
    if directory is None:
        return []
    if writes:
        return directory.keep_metrics(first)
    return directory.read_metrics()[:first] if first else []


def _explain_resuming(taken: int, steps: int, directory: RunDirectory | None) -> str:
    if directory is None:
        return f"stopped after {taken} of {steps} steps"
    place = shlex.quote(str(directory.path))
    return f"stopped after {taken} of {steps} steps; `paretoda adapt --out {place} --resume` continues from here"


@dataclass(eq=False)
class Snapshots:
    """Snapshots of the model; a candidate and a refresh after the same step share one.

    Args:
        pair: Source and target.
        step: The step with the model.
    """

    pair: Pair
    step: Step
    _last: tuple[int, Snapshot] | None = None

    def after(self, taken: int) -> Snapshot:
        """Return a snapshot of the whole sets after so many steps."""
        if self._last is None or self._last[0] != taken:
            found = take_snapshot(self.pair, self.step.model, self.step.device, processes=self.step.processes)
            self._last = (taken, found)
        return self._last[1]


def _before(settings: Settings, step: Step, snapshots: Snapshots) -> Callable[[int], None]:
    """Return the hook before each step, which refreshes parts and seeds the step."""

    def before(index: int) -> None:
        step.refresh(partial(snapshots.after, index), due=index % settings.refresh_every == 0)
        step.seed(settings.seed, index)

    return before
