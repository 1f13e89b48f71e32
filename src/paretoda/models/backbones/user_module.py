"""module:package.factory: the user's own network, whose code runs only with the user's consent.

Starting a new run with it is consent. A finished or stopped run only names it, and may come from someone else: there
the user consents once more, with `paretoda --trust-module package.factory ...` or in the environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import nn

from paretoda.errors import BackboneError
from paretoda.models.backbones.backbone import Backbone

TRUSTED = "PARETODA_TRUST_MODULE"
"""Environment variable with trusted names, separated by commas."""
MODULE = "module:"
_consented: set[str] = set()


def consent(backbone: str) -> None:
    """Allow this process to run the code that the name of the backbone refers to, if there is any."""
    if backbone.startswith(MODULE):
        _consented.add(backbone.removeprefix(MODULE))


def describe_backbone(path: str) -> Backbone:
    """Describe the backbone that `package.factory(channels)` builds."""
    return Backbone(build=lambda channels: _build_network(path, channels), width=0, facts={})


def check_trusted(path: str) -> None:
    """Raise unless the user has consented to run this code.

    Raises:
        BackboneError: There is no consent.
    """
    named = [name.strip() for name in os.environ.get(TRUSTED, "").split(",")]
    if path not in _consented and path not in named:
        raise BackboneError(
            f"the model is made by code of its own, {path}, which is not run unasked; if you trust it, say so: "
            f"paretoda --trust-module {path} ... (or {TRUSTED}={path} in the environment)"
        )


def _build_network(path: str, channels: int) -> nn.Module:
    check_trusted(path)
    network: Any = _factory(path)(channels)
    if not isinstance(network, nn.Module):
        raise BackboneError(f"{path}({channels}) must return a torch.nn.Module, it gave a {type(network).__name__}")
    return network


def _factory(path: str) -> Callable[[int], Any]:
    package, _, name = path.rpartition(".")
    if not package or not all(part.isidentifier() for part in path.split(".")):
        raise BackboneError(f"module:{path} must name a function in a module: module:package.factory")
    if os.getcwd() not in sys.path:  # a user's module may lie in the working directory; it comes last
        sys.path.append(os.getcwd())
    try:
        found = getattr(import_module(package), name)
    except (ImportError, AttributeError) as error:
        raise BackboneError(
            f"module:{path} cannot be imported ({error}); is it installed, or in this folder?"
        ) from error
    if not callable(found):
        raise BackboneError(f"module:{path} is no function of the number of channels")
    return found  # type: ignore[no-any-return]
