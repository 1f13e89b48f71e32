"""ParetoDA: domain adaptation with conflicting objectives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

from paretoda._moved import install_moved_modules

__version__ = "0.1.0"

__all__ = [
    "ALIGNMENTS",
    "GUIDES",
    "SCHEMES",
    "TARGET_LOSSES",
    "TASKS",
    "VALIDATORS",
    "Batch",
    "MicroBatches",
    "NonFiniteError",
    "Objective",
    "ParetoDAClassifier",
    "ParetoDARegressor",
    "ParetoDATransformer",
    "Report",
    "Run",
    "Source",
    "Step",
    "Target",
    "__version__",
    "adapt",
    "backward",
    "fit",
    "schemes",
    "segment",
]

if TYPE_CHECKING:
    from paretoda import schemes
    from paretoda.api import adapt, segment
    from paretoda.estimator import ParetoDAClassifier, ParetoDARegressor, ParetoDATransformer
    from paretoda.evaluation.validators import VALIDATORS
    from paretoda.gradients import MicroBatches, NonFiniteError, Report, backward
    from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
    from paretoda.run.result import Run
    from paretoda.schemes import SCHEMES
    from paretoda.tasks import TASKS
    from paretoda.training.loop import fit
    from paretoda.training.step import Step
    from paretoda.types import Batch, Objective, Source, Target

_HOMES = {
    "ALIGNMENTS": "paretoda.objectives",
    "GUIDES": "paretoda.objectives",
    "SCHEMES": "paretoda.schemes",
    "TARGET_LOSSES": "paretoda.objectives",
    "TASKS": "paretoda.tasks",
    "VALIDATORS": "paretoda.evaluation.validators",
    "Batch": "paretoda.types",
    "MicroBatches": "paretoda.gradients",
    "NonFiniteError": "paretoda.gradients",
    "Objective": "paretoda.types",
    "ParetoDAClassifier": "paretoda.estimator",
    "ParetoDARegressor": "paretoda.estimator",
    "ParetoDATransformer": "paretoda.estimator",
    "Report": "paretoda.gradients",
    "Run": "paretoda.run.result",
    "Source": "paretoda.types",
    "Step": "paretoda.training.step",
    "Target": "paretoda.types",
    "adapt": "paretoda.api",
    "backward": "paretoda.gradients",
    "fit": "paretoda.training.loop",
    "segment": "paretoda.api",
}

install_moved_modules()


def __getattr__(name: str) -> Any:
    """Import a public name on first use: `import paretoda` alone loads neither torch nor SciPy."""
    if name == "schemes":
        return import_module("paretoda.schemes")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "SceneRun":
        warn("paretoda.SceneRun is now paretoda.Run", DeprecationWarning, stacklevel=2)
        return import_module("paretoda.run.result").Run
    raise AttributeError(f"module 'paretoda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
