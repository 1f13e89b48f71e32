"""The tasks, the settings that only one of them reads, and the names that a setting may have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from paretoda.core.options import unknown
from paretoda.data.settings import LONGEST
from paretoda.evaluation.validators import PIXEL_VALIDATORS, VALIDATORS
from paretoda.models.backbones import EXTERNAL_PREFIXES, is_external
from paretoda.models.backbones import NAMES as BACKBONES
from paretoda.models.segmentation.backbones import SEGMENTATION_BACKBONES
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
        "backbone": ["auto", *BACKBONES, *EXTERNAL_PREFIXES.values()],
        "rule of selection": ["ensemble", "last", *VALIDATORS],
    },
    "segmentation": {
        "method": SEGMENTATION_METHODS,
        "target loss": SEGMENTATION_TARGET_LOSSES,
        "guide": SEGMENTATION_GUIDES,
        "scheme": list(SCHEMES),
        "backbone": ["auto", *SEGMENTATION_BACKBONES],
        "rule of selection": ["ensemble", "last", *PIXEL_VALIDATORS],
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
        if kind == "backbone" and is_external(given):
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
    if name in EXTERNAL_PREFIXES:
        raise ValueError(f"the backbone {name!r} lacks a name behind the colon, as in {EXTERNAL_PREFIXES[name]}")


def _check(task: str, kind: str, name: str) -> None:
    here = _OF_TASK[task][kind]
    other = next(each for each in _OF_TASK if each != task)
    if name not in here and name in _OF_TASK[other][kind]:
        raise ValueError(f"the {kind} {name!r} is for --task {other}, not for {task}")
    if name not in here:
        raise ValueError(unknown(kind, name, here))


Task = Literal["classification", "segmentation"]

ALONE: Mapping[str, tuple[str, ...]] = {
    "classification": (
        "frozen",
        "bottleneck",
        "dropout",
        "decay",
        "label_smoothing",
        "scaling",
        "image_size",
        "crops",
        "class_balanced",
    ),
    "segmentation": (
        "size",
        "source_size",
        "source_table",
        "translation",
        "teachers",
        "optimiser",
        "class_weights",
        "levels",
        "convention",
        "norm",
    ),
}
"""Task -> settings that only it reads."""

_USUAL: Mapping[str, Mapping[str, Any]] = {
    "classification": {},
    "segmentation": {
        "method": "advent",
        "target_loss": "tcm",
        "batch_size": 4,
        "bn": "per-domain",
        "weight_decay": 5e-4,
        "schedule": "poly",
        "refresh_every": 100,
    },
}
"""Task -> settings whose default is another than elsewhere."""

_WEIGHED: Mapping[str, Any] = {"joined": True, "head_losses": ("source",), "every": 5}
"""Of segmentation under the scheme 'paretoda': the published method is one objective, and alone trains the head.

The weights hardly change from step to step, and a step that holds them costs half as much.
"""


def with_task_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with what their task takes for granted below them."""
    task = str(values.get("task", "classification"))
    weighed = task == "segmentation" and values.get("scheme", "paretoda") == "paretoda"
    return {**_USUAL.get(task, {}), **(_WEIGHED if weighed else {}), **values}


def check_task(task: Task, given: Collection[str]) -> None:
    """Raise ValueError for a setting that this task does not read, and that would go unheard.

    Args:
        task: of the run.
        given: names of the settings that somebody set to something else than their default.
    """
    for other, names in ALONE.items():
        unheard = [f"--{name.replace('_', '-')}" for name in names if name in given]
        if other != task and unheard:
            raise ValueError(f"{', '.join(unheard)}: only for --task {other}")


def parse_size(size: str | None) -> tuple[int, int] | None:
    """Width and height of "160x120"; a ValueError for anything else but None."""
    if size is None:
        return None
    width, _, height = size.partition("x")
    whole = all(side.isdecimal() and len(side) < 6 for side in (width, height))
    if not (whole and min(int(width), int(height)) >= 8 and max(int(width), int(height)) <= LONGEST):
        raise ValueError(f"a size is WIDTHxHEIGHT, such as 160x120, with sides of 8 to {LONGEST}; not {size!r}")
    return int(width), int(height)
