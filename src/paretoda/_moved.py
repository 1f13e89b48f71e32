"""Modules that have moved: an old import path leads to the new module, with a DeprecationWarning."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast
from warnings import warn

MOVED = {
    "paretoda.data.digits": "paretoda.data.drawn.digits",
    "paretoda.data.driving": "paretoda.data.drawn.streets",
    "paretoda.domains": "paretoda.types",
    "paretoda.job": "paretoda.run",
    "paretoda.job.adapt": "paretoda.api",
    "paretoda.job.settings": "paretoda.run.settings",
    "paretoda.models.checkpointing": "paretoda.models.memory",
    "paretoda.models.compiling": "paretoda.models.memory",
    "paretoda.processes": "paretoda.distributed.collectives",
}
"""Old path -> new path, for the paths that documentation has named."""


class _Finder:
    """A finder and loader, as `sys.meta_path` takes it."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast("Any", self)) if fullname in MOVED else None

    def create_module(self, _spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warn(f"{module.__name__} is now {new}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(new)


def install_moved_modules() -> None:
    """Let old import paths lead to the new modules."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
