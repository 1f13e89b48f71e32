"""The training of a run: steps, refreshes, candidates, checkpoints, and going on after a stop."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from paretoda.data import DomainPair
from paretoda.data.segmentation import ScenePair
from paretoda.domains import Snapshot
from paretoda.gradients import Report
from paretoda.job.candidates import Candidates
from paretoda.job.coming import Coming
from paretoda.job.directory import RunDirectory, metrics_line
from paretoda.job.interrupt import InterruptedRunError, stop_requests
from paretoda.job.settings import Settings
from paretoda.training.checkpoint import read, restore, save
from paretoda.training.loop import After, fit
from paretoda.training.seeding import own_chance, seed_everything
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step


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
) -> Trained:
    """Train from the beginning, or from the last checkpoint.

    Args:
        settings: of the run.
        pair: the data.
        step: at its beginning.
        directory: for metrics, checkpoints and candidates; None: nothing is written.
        resume: go on from the directory's checkpoint.
        after: called after every step.
    """
    device = step.device
    with own_chance(device), stop_requests() as stop:
        candidates = Candidates(settings.select, directory)
        looks = Looks(pair, step)
        first = 0
        history: list[dict[str, object]] = []
        if resume and directory is not None:
            state = read(directory.checkpoint)
            first = restore(step, state)
            candidates.restore(state["extra"])
            directory.cut_metrics(first)
            history = list(directory.read_metrics())

        def record(taken: int, report: Report) -> None:
            history.append(metrics_line(taken, report))
            if directory is not None:
                directory.add_metrics(taken, report)

        def keep(taken: int, _report: Report) -> None:
            last = taken == settings.steps
            if taken % settings.candidate_every == 0 or last:
                candidates.add(taken, step, partial(looks.after, taken))
            if directory is not None and (taken % settings.checkpoint_every == 0 or last or stop.made):
                save(directory.checkpoint, step, taken, candidates.to_plain())
            if stop.made:
                raise InterruptedRunError(_how_to_go_on(taken, settings.steps, directory))

        with Coming(pair, step, range(first, settings.steps), settings.every) as batches:
            fit(
                step,
                batches,
                steps=settings.steps,
                first=first,
                before=_before(settings, step, looks),
                after=[record, keep, *after],
            )
        return Trained(step, candidates, history)


def _how_to_go_on(taken: int, steps: int, directory: RunDirectory | None) -> str:
    if directory is None:
        return f"stopped after {taken} of {steps} steps"
    place = shlex.quote(str(directory.path))
    return f"stopped after {taken} of {steps} steps; `paretoda adapt --out {place} --resume` goes on from here"


@dataclass(eq=False)
class Looks:
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
            self._last = (taken, take_snapshot(self.pair, self.step.model, self.step.device))
        return self._last[1]


def _before(settings: Settings, step: Step, looks: Looks) -> Callable[[int], None]:
    """Seed the step by its number, so that a resumed run draws the same; look at the whole sets now and then."""
    refreshed = [part for part in step.parts if part.refreshes]

    def before(index: int) -> None:
        if refreshed and index % settings.refresh_every == 0:
            snapshot = looks.after(index)
            for part in refreshed:
                part.refresh(snapshot)
        seed_everything(settings.seed, "step", index)

    return before
