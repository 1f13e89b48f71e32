"""The scheme of a run, as its settings say."""

from __future__ import annotations

from paretoda.core.options import with_options
from paretoda.core.problem import Scheme
from paretoda.job.settings import Settings
from paretoda.schemes import SCHEMES, Averaged, Every
from paretoda.training.strategies import STRATEGIES
from paretoda.training.strategy import Strategy


def make_scheme(settings: Settings) -> Scheme | Strategy:
    """The scheme, averaged and held as the settings say, or the strategy in its place."""
    options = settings.part_options["scheme"]
    if settings.scheme in STRATEGIES:
        return with_options(settings.scheme, STRATEGIES[settings.scheme], {}, options)
    if settings.loss_weights:
        options["weights"] = settings.loss_weights
    scheme: Scheme = with_options(settings.scheme, SCHEMES[settings.scheme], {}, options)
    usual = 0.95 if settings.scheme == "paretoda" else 0.0
    average = usual if settings.average is None else settings.average
    if average > 0:
        scheme = Averaged(scheme, average)
    return Every(scheme, settings.every) if settings.every > 1 else scheme
