"""Strategies: ways to train that look at a batch more than once, or change the network. One file each; their table."""

from __future__ import annotations

from collections.abc import Callable

from paretoda.training.strategies.auxilearn import AuxiLearn
from paretoda.training.strategies.hypernetwork import Hypernetwork
from paretoda.training.strategies.metaalign import MetaAlign
from paretoda.training.strategy import Strategy

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "metaalign": MetaAlign,
    "auxilearn": AuxiLearn,
    "hypernetwork": Hypernetwork,
}
"""Name -> strategy; each is made without arguments and named where a scheme is."""

__all__ = ["STRATEGIES", "AuxiLearn", "Hypernetwork", "MetaAlign"]
