"""Strategies: ways to train that use a batch more than once, or change the network; one file each, and their table."""

from __future__ import annotations

from collections.abc import Callable

from paretoda.training.strategies.auxilearn import AuxiLearn
from paretoda.training.strategies.hypernetwork import Hypernetwork
from paretoda.training.strategies.metaalign import MetaAlign
from paretoda.training.strategies.pga import Pga
from paretoda.training.strategy import Strategy

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "metaalign": MetaAlign,
    "auxilearn": AuxiLearn,
    "hypernetwork": Hypernetwork,
    "pga": Pga,
}
"""Name -> strategy; each is made without arguments and named in the place of a scheme."""

__all__ = ["STRATEGIES", "AuxiLearn", "Hypernetwork", "MetaAlign", "Pga"]
