"""The option `prior` of losses that ask for diversity: a word becomes the numbers that the data know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor

from paretoda.job.settings import SettingsError

_DIVERSE = ("tcm", "im")
_RAREST = 1e-3
"""Least share of a class in the prior of target losses."""
_WORDS = ("source", "estimated", "uniform")


def with_prior(
    name: str, options: dict[str, Any], source: Callable[[], Tensor], usual: Literal["source", "estimated", "uniform"]
) -> dict[str, Any]:
    """The options of a target loss with the prior as numbers.

    "source": as frequent as in the source; "estimated": the same, moved to the target by what the training sees of it;
    "uniform": equally frequent; or a number for each class.

    Args:
        name: of the loss.
        options: of it.
        source: how frequent the classes are in the source, shape (K,).
        usual: where the options have none.
    """
    wanted = options.get("prior", usual)
    if name not in _DIVERSE or not isinstance(wanted, str):
        return options
    if wanted not in _WORDS:
        raise SettingsError(f"target.prior is {', '.join(_WORDS)} or a number for each class; not {wanted!r}")
    if wanted == "uniform":
        return {**options, "prior": None}
    return {**options, "prior": source().clamp(min=_RAREST).tolist(), "shift": wanted == "estimated"}
