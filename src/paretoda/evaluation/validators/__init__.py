"""Validators: scores of a model that need no target label. One file holds one validator; this is their table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from paretoda.core.options import unknown
from paretoda.evaluation.model_selection import (
    COMPARABLE,
    ENSEMBLE,
    Choice,
    Ensemble,
    choose,
    negative_transfer_warning,
    split_rule,
)
from paretoda.evaluation.validators.circv import CircV
from paretoda.evaluation.validators.class_ami import ClassAMI
from paretoda.evaluation.validators.dev import DEV, SourceRisk, squared_error
from paretoda.evaluation.validators.information import BNM, IM, CorrC, Entropy
from paretoda.evaluation.validators.mano import MaNo
from paretoda.evaluation.validators.mixval import MixVal
from paretoda.evaluation.validators.snd import SND
from paretoda.evaluation.validators.transfer_score import TransferScore
from paretoda.evaluation.validators.validator import Validator

VALIDATORS: dict[str, Callable[[], Validator]] = {
    "im": IM,
    "entropy": Entropy,
    "snd": SND,
    "dev": DEV,
    "bnm": BNM,
    "source-risk": SourceRisk,
    "corr-c": CorrC,
    "mixval": MixVal,
    "transfer-score": TransferScore,
    "class-ami": ClassAMI,
    "mano": MaNo,
    "circv": CircV,
}
"""Name -> validator; each can be built without arguments."""

WITH_SOURCE = ("dev", "source-risk", "circv")
"""Validators that read the source's labels."""

_NOT_FOR_PIXELS = ("transfer-score", "class-ami", "circv")
PIXEL_VALIDATORS = {name: kind for name, kind in VALIDATORS.items() if name not in _NOT_FOR_PIXELS}
"""Validators for pixel labels.

A convolution has no class vectors in the feature space, which transfer-score needs, and reads the surroundings of a
pixel, which the linear classifier of circv does not. The features of pixels cluster by texture, and the classes of
class-ami are of very different sizes there.
"""

VALUE_VALIDATORS: dict[str, Callable[[], Validator]] = {
    "dev": partial(DEV, errors=squared_error),
    "source-risk": partial(SourceRisk, errors=squared_error),
}
"""Validators of regression: those that read errors and features, but no classes."""


def make_validator(name: str) -> Validator:
    """Build the validator of that name with its default settings.

    Args:
        name: Name in `VALIDATORS`.

    Raises:
        ValueError: The name is unknown.

    Examples:
        >>> make_validator("snd")
        SND(temperature=0.05, needed=0.5, samples=10000, seed=0)
    """
    if name not in VALIDATORS:
        raise ValueError(unknown("validator", name, VALIDATORS))
    return VALIDATORS[name]()


__all__ = [
    "BNM",
    "COMPARABLE",
    "DEV",
    "ENSEMBLE",
    "IM",
    "PIXEL_VALIDATORS",
    "SND",
    "VALIDATORS",
    "VALUE_VALIDATORS",
    "WITH_SOURCE",
    "Choice",
    "CircV",
    "ClassAMI",
    "CorrC",
    "Ensemble",
    "Entropy",
    "MaNo",
    "MixVal",
    "SourceRisk",
    "TransferScore",
    "Validator",
    "choose",
    "make_validator",
    "negative_transfer_warning",
    "split_rule",
]
