"""The training of a run: steps, refreshes, candidates, checkpoints, and going on after a stop."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from paretoda.data import DomainPair
from paretoda.data.segmentation import ScenePair
from paretoda.gradients import NonFiniteError, Report
from paretoda.run.candidates import Candidates
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.tables import metrics_line
from paretoda.run.interrupt import InterruptedRunError, stop_requests
from paretoda.run.nonfinite import TolerantStep, check_parameters, explain_failure
from paretoda.run.prefetcher import Prefetcher
from paretoda.run.settings import Settings
from paretoda.run.tracking import open_tracker
from paretoda.training.checkpoint import CheckpointError, read_checkpoint, restore_step, save_checkpoint
from paretoda.training.loop import After, fit
from paretoda.training.seeding import isolated_rng, seed_everything
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step
from paretoda.types import Snapshot


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves behind.

    Args:
        step: with the networks as they are after the last step.
        candidates: states along the way and their scores.
        history: one line a step.
    """

    step: Step
    candidates: Candidates
    history: list[dict[str, object]]


def train(
    settings: Settings,
    pair: DomainPair | ScenePair,
    step: Step,
    *,
    directory: RunDirectory | None = None,
    resume: bool = False,
    after: Sequence[After] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Train from the beginning, or from the last checkpoint.

    Args:
        settings: of the run.
        pair: the data.
        step: at its beginning.
        directory: for metrics, checkpoints and candidates; None: nothing is written. Of several processes, the first
            writes, and all read.
        resume: go on from the directory's checkpoint.
        after: called after every step.
        say: told of a damaged checkpoint and of steps that are left out.
    """
    device, processes = step.device, step.processes
    writes = processes.rank == 0
    with isolated_rng(device), stop_requests(1 if processes.size == 1 else 2) as stop:
        candidates = Candidates(settings.select, directory, processes)
        looks = Snapshots(pair, step)
        tolerant = TolerantStep(step, settings.skip_nonfinite, say)
        first = 0
        if resume and directory is not None:
            first = _go_on(step, directory, candidates, tolerant, say)
            if first > settings.steps:
                raise CheckpointError(f"the checkpoint is of step {first} and the run has {settings.steps} steps only")
        processes.broadcast(step.modules().state_dict().values())
        history = _history(directory, first, writes=writes)

        def record(taken: int, report: Report) -> None:
            history.append(metrics_line(taken, report))
            tracker.step(history[-1], max(group["lr"] for group in step.optimiser.param_groups))
            if directory is not None and writes:
                directory.add_metrics(taken, report)

        def keep(taken: int, _report: Report) -> None:
            last = taken == settings.steps
            stopped = processes.any(stop.made)
            saved = taken % settings.checkpoint_every == 0 or last or stopped
            if saved:
                check_parameters(step, taken, settings.steps)
            if taken % settings.candidate_every == 0 or last:
                candidates.add(taken, step, partial(looks.after, taken))
                tracker.scores(taken, candidates.scores[-1])
            if directory is not None and saved:
                # Where sums on GPUs differ in the last bits, the heads go on from the same ones again.
                processes.broadcast(step.modules().state_dict().values())
                if writes:
                    directory.sync_metrics()
                    tracker.flush()
                    save_checkpoint(
                        directory.checkpoint, step, taken, {**candidates.to_plain(), "skipped": tolerant.skipped}
                    )
            if stopped:
                processes.any(True)  # nobody leaves before the first process has saved
                raise InterruptedRunError(_how_to_go_on(taken, settings.steps, directory))

        try:
            with (
                open_tracker(settings, directory if writes else None, first) as tracker,
                Prefetcher(pair, step, range(first, settings.steps), settings.every) as batches,
            ):
                fit(
                    tolerant,
                    batches,
                    steps=settings.steps,
                    first=first,
                    before=_before(settings, step, looks),
                    after=[record, keep, *after],
                )
        except NonFiniteError as error:
            raise explain_failure(error, len(history), settings.steps, tolerant.skipped) from error
        return Trained(step, candidates, history)


def _go_on(
    step: Step, directory: RunDirectory, candidates: Candidates, tolerant: TolerantStep, say: Callable[[str], None]
) -> int:
    """Read the checkpoint, in every process; returns how many steps are behind it."""
    state = read_checkpoint(directory.checkpoint, say)
    first = restore_step(step, state)
    candidates.restore(state["extra"])
    tolerant.skipped = state["extra"].get("skipped", 0)
    if type(tolerant.skipped) is not int or tolerant.skipped < 0:
        raise CheckpointError("the checkpoint does not say how many steps were left out; start again with --overwrite")
    if len(set(step.processes.gather_numbers(first))) > 1:
        raise CheckpointError(f"the processes read different checkpoints in {directory.path}: put it on a shared disk")
    return first


def _history(directory: RunDirectory | None, first: int, *, writes: bool) -> list[dict[str, object]]:
    """The lines of the steps that are behind; who writes leaves no others in the file."""
    if directory is None:
        return []
    if writes:
        return directory.first_metrics(first)
    return directory.read_metrics()[:first] if first else []


def _how_to_go_on(taken: int, steps: int, directory: RunDirectory | None) -> str:
    if directory is None:
        return f"stopped after {taken} of {steps} steps"
    place = shlex.quote(str(directory.path))
    return f"stopped after {taken} of {steps} steps; `paretoda adapt --out {place} --resume` goes on from here"


@dataclass(eq=False)
class Snapshots:
    """Snapshots of the model; one that a candidate and a refresh want after the same step is taken once.

    Args:
        pair: the data.
        step: with the model.
    """

    pair: DomainPair | ScenePair
    step: Step
    _last: tuple[int, Snapshot] | None = None

    def after(self, taken: int) -> Snapshot:
        """The whole sets as the model sees them after so many steps."""
        if self._last is None or self._last[0] != taken:
            found = take_snapshot(self.pair, self.step.model, self.step.device, processes=self.step.processes)
            self._last = (taken, found)
        return self._last[1]


def _before(settings: Settings, step: Step, looks: Snapshots) -> Callable[[int], None]:
    """Seed the step by its number, so that a resumed run draws the same; look at the whole sets now and then."""
    refreshed = [part for part in step.parts if part.refreshes]

    def before(index: int) -> None:
        due = refreshed if index % settings.refresh_every == 0 else [part for part in refreshed if part.due]
        if due:
            snapshot = looks.after(index)
            for part in due:
                part.refresh(snapshot)
        seed_everything(settings.seed, "step", index)

    return before
