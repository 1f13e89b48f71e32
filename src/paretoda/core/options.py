"""A part's options by name, as they stand in a configuration file: an unknown one is refused with the nearest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from paretoda.core.names import hint

Options = Mapping[str, object]
"""A part's own settings by name."""

Part = TypeVar("Part")


def with_options(name: str, factory: Callable[..., Part], given: Options, options: Options | None) -> Part:
    """Call the factory with what is given and with the options.

    Args:
        name: of the part, for the error.
        factory: a class or a partial of one.
        given: arguments that are no options.
        options: by name; None for none.
    """
    known = [option for option in inspect.signature(factory).parameters if option not in given]
    for option in options or {}:
        if option not in known:
            raise ValueError(f"{name!r} has no option {option!r}; {hint(option, known)}")
    return factory(**given, **(options or {}))
