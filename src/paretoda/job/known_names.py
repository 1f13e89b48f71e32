"""Names that a setting may have, and what to say where it has another."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paretoda.core.names import unknown
from paretoda.evaluation.validators import SEGMENTATION_VALIDATORS, VALIDATORS
from paretoda.models.backbones import FROM_OUTSIDE, from_outside
from paretoda.models.backbones import NAMES as BACKBONES
from paretoda.models.pixel_backbones import SEGMENTATION_BACKBONES
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.objectives.segmentation import SEGMENTATION_GUIDES, SEGMENTATION_METHODS, SEGMENTATION_TARGET_LOSSES
from paretoda.schemes import SCHEMES
from paretoda.training.strategies import STRATEGIES

_OF_TASK: Mapping[str, Mapping[str, Collection[str]]] = {
    "classification": {
        "method": ALIGNMENTS,
        "target loss": TARGET_LOSSES,
        "guide": GUIDES,
        "scheme": [*SCHEMES, *STRATEGIES],
        "backbone": ["auto", *BACKBONES, *FROM_OUTSIDE.values()],
        "rule of selection": ["ensemble", "last", *VALIDATORS],
    },
    "segmentation": {
        "method": SEGMENTATION_METHODS,
        "target loss": SEGMENTATION_TARGET_LOSSES,
        "guide": SEGMENTATION_GUIDES,
        "scheme": list(SCHEMES),
        "backbone": ["auto", *SEGMENTATION_BACKBONES],
        "rule of selection": ["ensemble", "last", *SEGMENTATION_VALIDATORS],
    },
}
"""Task -> what has a name -> all names."""


def check_names(task: str, names: Mapping[str, str]) -> None:
    """A ValueError with the nearest name where the task has none of that name.

    Args:
        task: classification or segmentation.
        names: what has a name -> its name; the target loss may be several with a plus between them, each once.
    """
    losses = names["target loss"].split("+")
    for kind, given in names.items():
        if kind == "backbone" and from_outside(given):
            _check_outside(task, given)
            continue
        for name in losses if kind == "target loss" else [given]:
            _check(task, kind, name)
    if len(set(losses)) < len(losses) or ("none" in losses and len(losses) > 1):
        whole = names["target loss"]
        raise ValueError(f"the target loss {whole!r} makes no sense: name each loss once, 'none' stands alone")


def _check_outside(task: str, name: str) -> None:
    if task != "classification":
        raise ValueError(f"the backbone {name!r} is for --task classification, not for {task}")
    if name in FROM_OUTSIDE:
        raise ValueError(f"the backbone {name!r} lacks a name behind the colon, as in {FROM_OUTSIDE[name]}")


def _check(task: str, kind: str, name: str) -> None:
    here = _OF_TASK[task][kind]
    other = next(each for each in _OF_TASK if each != task)
    if name not in here and name in _OF_TASK[other][kind]:
        raise ValueError(f"the {kind} {name!r} is for --task {other}, not for {task}")
    if name not in here:
        raise ValueError(unknown(kind, name, here))
