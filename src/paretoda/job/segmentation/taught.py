"""What self-training taught, in plain words."""

from __future__ import annotations

from collections.abc import Iterable

from paretoda.domains import Objective
from paretoda.objectives.segmentation.cbst import Cbst


def taught_sentence(objectives: Iterable[Objective]) -> str | None:
    """How many of the target's pixels had a label in the last round and how many were ignored; None without rounds."""
    found = [module for objective in objectives for module in objective.modules() if isinstance(module, Cbst)]
    if not found:
        return None
    if not len(found[0].labels):
        return "No pixel of the target was labelled: the training ended before the first round of self-training."
    share = found[0].share
    return f"In the last round {share:.1%} of the target's pixels had a label, and {1 - share:.1%} were ignored."
