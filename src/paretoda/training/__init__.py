"""One page for the step, one function for the loop."""

from paretoda.gradients import Report as StepReport
from paretoda.training.loop import fit
from paretoda.training.step import Step

__all__ = ["Step", "StepReport", "fit"]
