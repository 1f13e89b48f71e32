"""ParetoDA: domain adaptation with conflicting objectives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "MicroBatches",
    "NonFiniteError",
    "ParetoDAClassifier",
    "ParetoDATransformer",
    "Report",
    "Run",
    "SceneRun",
    "__version__",
    "adapt",
    "backward",
    "schemes",
    "segment",
]

if TYPE_CHECKING:
    from paretoda.api import adapt, segment
    from paretoda.estimator import ParetoDAClassifier, ParetoDATransformer
    from paretoda.gradients import MicroBatches, NonFiniteError, Report, backward
    from paretoda.tasks.classification.results import Run
    from paretoda.tasks.segmentation.results import SceneRun

_HOMES = {
    "MicroBatches": "paretoda.gradients",
    "NonFiniteError": "paretoda.gradients",
    "ParetoDAClassifier": "paretoda.estimator",
    "ParetoDATransformer": "paretoda.estimator",
    "Report": "paretoda.gradients",
    "Run": "paretoda.tasks.classification.results",
    "SceneRun": "paretoda.tasks.segmentation.results",
    "adapt": "paretoda.api",
    "backward": "paretoda.gradients",
    "segment": "paretoda.api",
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
