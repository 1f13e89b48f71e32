"""Gradients of several losses: rows of gradients, their inner products, and the combination written to `.grad`."""

from paretoda.gradients.backward import backward
from paretoda.gradients.gram import gram
from paretoda.gradients.micro_batches import MicroBatches
from paretoda.gradients.parameters import last_layer
from paretoda.gradients.report import NonFiniteError, Report

__all__ = ["MicroBatches", "NonFiniteError", "Report", "backward", "gram", "last_layer"]
