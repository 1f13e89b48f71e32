"""Steps whose loss or gradient is NaN or infinite: a few may be left out, the next one ends the run."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch

from paretoda.core.problem import Move
from paretoda.core.simplex import equal
from paretoda.gradients import NonFiniteError, Report
from paretoda.training.checkpoint import restore_step, step_state
from paretoda.training.optimisers import ExhaustedScaleError
from paretoda.training.step import Step
from paretoda.types import Batch

_ADVICE = "start again with a lower --lr or with --clip 1"


class DivergedError(NonFiniteError):
    """A network has become NaN or infinite although every gradient was finite."""


class TolerantStep:
    """A step that may be NaN or infinite a few times; what it had changed by then is restored.

    Args:
        step: The step to take.
        allowed: How many steps of the run may be left out.
        say: Called with a sentence for each step that is left out.
    """

    def __init__(self, step: Step, allowed: int, say: Callable[[str], None]) -> None:
        self._step, self._allowed, self._say = step, allowed, say
        self.skipped = 0

    def advance(self, progress: float) -> None:
        """Set schedules to this share of the training."""
        self._step.advance(progress)

    def __call__(self, batch: Batch) -> Report:
        """Take one step, or leave it out."""
        if self._allowed <= self.skipped:
            return self._step(batch)
        before = copy.deepcopy(step_state(self._step, 0))  # BatchNorm has seen the batch before its loss is known
        try:
            return self._step(batch)
        except NonFiniteError as error:
            restore_step(self._step, before)
            self._step.optimiser.zero_grad(set_to_none=True)
            self.skipped += 1
            self._say(f"A step was skipped, {self.skipped} of {self._allowed} that may be: {error}.")
            names = tuple(self._step.objectives)
            return Report(names, np.full(len(names), np.nan), equal(len(names)), Move.SKIPPED, finite=False)


def explain_failure(
    error: NonFiniteError, taken: int, steps: int, skipped: int, *, resumable: bool = True
) -> NonFiniteError:
    """Return the error that ends a run, with what to do.

    Args:
        error: The error that says what was not finite.
        taken: Number of steps taken so far.
        steps: Number of steps of the run.
        skipped: Number of steps that were left out.
        resumable: Whether there is a checkpoint to continue from.
    """
    if isinstance(error, DivergedError):
        return error
    if isinstance(error, ExhaustedScaleError):
        return NonFiniteError(f"{error}; this was step {taken + 1} of {steps}")
    before = f" after {skipped} were skipped" if skipped else ""
    again = (
        f", or continue from the last checkpoint with --resume --skip-nonfinite {max(10, 2 * skipped)}, which skips up "
        "to that many such steps"
    )
    return NonFiniteError(
        f"{error}; this was step {taken + 1} of {steps}{before}; {_ADVICE}{again if resumable else ''}"
    )


def check_parameters(step: Step, taken: int, steps: int) -> None:
    """Raise DivergedError where a network is no longer finite: it must not replace a good checkpoint."""
    for name, parameter in step.modules().named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise DivergedError(
                f"the parameter {name!r} is no longer finite after step {taken} of {steps}; {_ADVICE}; the checkpoint "
                "before it is kept"
            )
