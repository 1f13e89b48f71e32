"""The two tasks: their defaults, and the names that each of them knows.

Importing this module imports no torch: checking a name imports the tables of methods, schemes and backbones.
"""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from paretoda.core.options import unknown
from paretoda.io.limits import LONGEST_SIDE

Task = Literal["classification", "segmentation"]


def _names_of_tasks() -> Mapping[str, Mapping[str, Collection[str]]]:
    """Return task -> kind of name -> all names of this kind."""
    from paretoda.evaluation.validators import SEGMENTATION_VALIDATORS, VALIDATORS
    from paretoda.models.backbones import FROM_OUTSIDE, NAMES
    from paretoda.models.segmentation.backbones import SEGMENTATION_BACKBONES
    from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
    from paretoda.objectives.segmentation import SEGMENTATION_GUIDES, SEGMENTATION_METHODS, SEGMENTATION_TARGET_LOSSES
    from paretoda.schemes import SCHEMES
    from paretoda.training.strategies import STRATEGIES

    return {
        "classification": {
            "method": ALIGNMENTS,
            "target loss": TARGET_LOSSES,
            "guide": GUIDES,
            "scheme": [*SCHEMES, *STRATEGIES],
            "backbone": ["auto", *NAMES, *FROM_OUTSIDE.values()],
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


def check_names(task: str, names: Mapping[str, str]) -> None:
    """Check that the task knows every name.

    Args:
        task: Name of the task.
        names: Kind of name -> the name that was given. The target loss may be several names joined by plus signs.

    Raises:
        ValueError: If a name is unknown; the message suggests the nearest one. Also if a target loss is given twice,
            or "none" beside others.
    """
    from paretoda.models.backbones import from_outside

    known = _names_of_tasks()
    losses = names["target loss"].split("+")
    for kind, given in names.items():
        if kind == "backbone" and from_outside(given):
            _check_outside(task, given)
            continue
        for name in losses if kind == "target loss" else [given]:
            _check_name(known, task, kind, name)
    if len(set(losses)) < len(losses) or ("none" in losses and len(losses) > 1):
        whole = names["target loss"]
        raise ValueError(f"the target loss {whole!r} makes no sense: name each loss once, 'none' stands alone")


def is_strategy(scheme: str) -> bool:
    """Return whether a scheme is a training strategy, which has its own step and compares no gradients."""
    from paretoda.training.strategies import STRATEGIES

    return scheme in STRATEGIES


def _check_outside(task: str, name: str) -> None:
    from paretoda.models.backbones import FROM_OUTSIDE

    if task != "classification":
        raise ValueError(f"the backbone {name!r} is for --task classification, not for {task}")
    if name in FROM_OUTSIDE:
        raise ValueError(f"the backbone {name!r} lacks a name behind the colon, as in {FROM_OUTSIDE[name]}")


def _check_name(known: Mapping[str, Mapping[str, Collection[str]]], task: str, kind: str, name: str) -> None:
    if name in known[task][kind]:
        return
    for other in known:
        if name in known[other][kind]:
            raise ValueError(f"the {kind} {name!r} is for --task {other}, not for {task}")
    raise ValueError(unknown(kind, name, known[task][kind]))


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
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
"""Task -> defaults that differ from those of `Settings`."""

_PARETODA_DEFAULTS: Mapping[str, Any] = {"joined": True, "head_losses": ("source",), "every": 5}
"""Further defaults of segmentation under the scheme 'paretoda'.

The published method is one objective, and it alone trains the head. The weights hardly change from step to step, and a
step that keeps them costs half as much.
"""


def with_task_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, completed by the defaults of their task.

    Args:
        values: Settings that were given; they take precedence.
    """
    task = str(values.get("task", "classification"))
    weighted = task == "segmentation" and values.get("scheme", "paretoda") == "paretoda"
    return {**_DEFAULTS.get(task, {}), **(_PARETODA_DEFAULTS if weighted else {}), **values}


def parse_size(size: str | None) -> tuple[int, int] | None:
    """Return width and height of a size such as "160x120"; None for None.

    Raises:
        ValueError: If the text is no size, or a side is too short or too long.
    """
    if size is None:
        return None
    width, _, height = size.partition("x")
    whole = all(side.isdecimal() and len(side) < 6 for side in (width, height))
    if not (whole and min(int(width), int(height)) >= 8 and max(int(width), int(height)) <= LONGEST_SIDE):
        raise ValueError(f"a size is WIDTHxHEIGHT, such as 160x120, with sides of 8 to {LONGEST_SIDE}; not {size!r}")
    return int(width), int(height)
