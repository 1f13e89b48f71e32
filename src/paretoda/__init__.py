"""ParetoDA: domain adaptation with conflicting objectives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["NonFiniteError", "Report", "__version__", "backward", "schemes"]

if TYPE_CHECKING:
    from paretoda import schemes
    from paretoda.gradients import NonFiniteError, Report, backward

_HOMES = {
    "NonFiniteError": "paretoda.gradients",
    "Report": "paretoda.gradients",
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
