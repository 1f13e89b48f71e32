"""Training: the step that weighs the objectives, and the loop around it."""

from paretoda.gradients import Report as StepReport
from paretoda.training.loop import fit
from paretoda.training.step import Step

__all__ = ["Step", "StepReport", "fit"]
