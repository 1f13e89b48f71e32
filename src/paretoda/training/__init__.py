"""One page for the step, one function for the loop."""

from paretoda.training.loop import fit
from paretoda.training.step import Step, StepReport

__all__ = ["Step", "StepReport", "fit"]
