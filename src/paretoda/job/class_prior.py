"""The option `prior` of losses that ask for diversity: a word becomes the numbers that the data know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from torch import Tensor

from paretoda.domains import Objective
from paretoda.job.settings import SettingsError
from paretoda.objectives.label_shift import LabelShift

_DIVERSE = ("tcm", "im")
_RAREST = 1e-3
"""Least share of a class in the prior of target losses."""
_WORDS = ("source", "estimated", "uniform")
_WORTH_SAYING = 1.25
_NAMED = 3


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


def shift_sentence(objectives: Iterable[Objective], classes: Sequence[str]) -> str | None:
    """What was found where frequencies were estimated, in plain words; None where they were not."""
    found = [module for objective in objectives for module in objective.modules() if isinstance(module, LabelShift)]
    if not found:
        return None
    ratios = dict(zip(classes, found[0].log_ratios.exp().tolist(), strict=True))
    far = sorted(ratios, key=lambda name: -max(ratios[name], 1 / ratios[name]))[:_NAMED]
    told = [f"{name} {ratios[name]:.1f} times" for name in far if max(ratios[name], 1 / ratios[name]) >= _WORTH_SAYING]
    if not told:
        return "By its predictions the target has the classes about as often as the source."
    listed = " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)
    return f"By its predictions the target has {listed} as often as the source; the target loss asked for that."
