"""The versions that a run was made with."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

from paretoda import __version__


def environment() -> dict[str, str]:
    """Versions of what a run depends on."""
    found = {"paretoda": __version__, "python": sys.version.split()[0], "platform": platform.platform()}
    return found | {name: version(name) for name in ("torch", "numpy", "scipy", "scikit-learn", "pillow")}
