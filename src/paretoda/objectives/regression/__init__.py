"""Objectives of regression; these are their tables. What needs no classes is taken from `paretoda.objectives`."""

from __future__ import annotations

from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.objectives.parts.table import Factory
from paretoda.objectives.regression.neighbour_values import NeighbourValues
from paretoda.objectives.regression.value_error import HuberError, SquaredError

VALUE_LOSSES: dict[str, Factory] = {"mse": SquaredError, "huber": HuberError}
"""Name -> loss on the labelled source."""

VALUE_METHODS: dict[str, Factory | None] = {
    name: ALIGNMENTS[name] for name in ("source-only", "dann", "dan", "ddc", "coral", "afn", "rsd")
}
"""Alignments that read neither labels nor logits, only features; None for no alignment."""

VALUE_TARGET_LOSSES: dict[str, Factory | None] = {name: TARGET_LOSSES[name] for name in ("none", "bsp")}
"""Losses on the target that read features only; None for no loss."""

VALUE_GUIDES: dict[str, Factory] = {"neighbours": NeighbourValues}
"""Name -> loss on held-out target samples, whose gradient guides the weights."""

__all__ = [
    "VALUE_GUIDES",
    "VALUE_LOSSES",
    "VALUE_METHODS",
    "VALUE_TARGET_LOSSES",
    "HuberError",
    "NeighbourValues",
    "SquaredError",
]
