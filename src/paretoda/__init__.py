"""ParetoDA: domain adaptation with conflicting objectives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "NonFiniteError",
    "ParetoDAClassifier",
    "ParetoDATransformer",
    "Report",
    "Run",
    "__version__",
    "adapt",
    "backward",
    "schemes",
]

if TYPE_CHECKING:
    from paretoda import schemes
    from paretoda.estimator import ParetoDAClassifier, ParetoDATransformer
    from paretoda.gradients import NonFiniteError, Report, backward
    from paretoda.job.adapt import adapt
    from paretoda.job.run import Run

_HOMES = {
    "NonFiniteError": "paretoda.gradients",
    "ParetoDAClassifier": "paretoda.estimator",
    "ParetoDATransformer": "paretoda.estimator",
    "Report": "paretoda.gradients",
    "Run": "paretoda.job.run",
    "adapt": "paretoda.job.adapt",
    "backward": "paretoda.gradients",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `import paretoda` alone loads neither torch nor SciPy."""
    if name == "schemes":
        return import_module("paretoda.schemes")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'paretoda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
