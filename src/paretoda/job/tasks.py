"""Classification and segmentation: which settings are for one of them alone, and what they take for granted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from paretoda.data.settings import LONGEST

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


def with_usual(values: Mapping[str, Any]) -> dict[str, Any]:
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


def two_sides(size: str | None) -> tuple[int, int] | None:
    """Width and height of "160x120"; a ValueError for anything else but None."""
    if size is None:
        return None
    width, _, height = size.partition("x")
    whole = all(side.isdecimal() and len(side) < 6 for side in (width, height))
    if not (whole and min(int(width), int(height)) >= 8 and max(int(width), int(height)) <= LONGEST):
        raise ValueError(f"a size is WIDTHxHEIGHT, such as 160x120, with sides of 8 to {LONGEST}; not {size!r}")
    return int(width), int(height)
