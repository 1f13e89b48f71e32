"""Data: samples of any origin, and the pair of a labelled source and an unlabelled target."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["DataError", "DomainPair", "PairSettings", "Samples", "examine", "make_pair", "open_samples"]

if TYPE_CHECKING:
    from paretoda.data.build_pair import make_pair
    from paretoda.data.doctor.examine import examine
    from paretoda.data.open.samples import open_samples
    from paretoda.data.pair import DomainPair
    from paretoda.data.samples import Samples
    from paretoda.data.settings import PairSettings
    from paretoda.errors import DataError

_HOMES = {
    "DataError": "errors",
    "DomainPair": "data.pair",
    "PairSettings": "data.settings",
    "Samples": "data.samples",
    "examine": "data.doctor.examine",
    "make_pair": "data.build_pair",
    "open_samples": "data.open.samples",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: errors can be caught and settings be read without importing torch."""
    if name in _HOMES:
        return getattr(import_module(f"paretoda.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'paretoda.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
