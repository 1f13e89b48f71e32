"""Names that a setting may have, and what to say where it has another."""

from __future__ import annotations

from paretoda.core.names import unknown
from paretoda.evaluation.validators import VALIDATORS
from paretoda.models.backbones import NAMES as BACKBONES
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.schemes import SCHEMES
from paretoda.training.strategies import STRATEGIES

_NAMES: dict[str, tuple[str, list[str]]] = {
    "method": ("method", list(ALIGNMENTS)),
    "scheme": ("scheme", [*SCHEMES, *STRATEGIES]),
    "guide": ("guide", list(GUIDES)),
    "backbone": ("backbone", ["auto", *BACKBONES]),
    "select": ("rule of selection", ["ensemble", "last", *VALIDATORS]),
}
"""Setting -> what it is, and all its names."""


def known_name(setting: str, value: str) -> str:
    """The value, or a ValueError with the nearest name."""
    kind, names = _NAMES[setting]
    if value not in names:
        raise ValueError(unknown(kind, value, names))
    return value


def known_losses(value: str) -> str:
    """One or several target losses with a plus between them, each once; or a ValueError."""
    names = value.split("+")
    for name in names:
        if name not in TARGET_LOSSES:
            raise ValueError(unknown("target loss", name, TARGET_LOSSES))
    if len(set(names)) < len(names) or ("none" in names and len(names) > 1):
        raise ValueError(f"the target loss {value!r} makes no sense: name each loss once, 'none' stands alone")
    return value
