"""Gradients of several losses: rows of gradients, their inner products, and the combination written to `.grad`."""

from paretoda.gradients.backward import backward
from paretoda.gradients.gram import gram
from paretoda.gradients.micro_batches import MicroBatches
from paretoda.gradients.report import NonFiniteError, Report
from paretoda.gradients.tensors import last_layer

__all__ = ["MicroBatches", "NonFiniteError", "Report", "backward", "gram", "last_layer"]
