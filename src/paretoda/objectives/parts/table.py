"""Construction of objectives from the tables that list them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paretoda.core.options import Options, unknown, with_options
from paretoda.types import Objective

Factory = Callable[..., Objective]
"""Called by keyword with the features, the classes (guides: also target_loss) and the objective's own options."""


def make_objective(
    kind: str,
    name: str,
    table: Mapping[str, Factory | None],
    given: Mapping[str, object],
    options: Options | None,
) -> Objective | None:
    """Build the objective of that name.

    Args:
        kind: What the table lists, for the error: "method", "target loss" or "guide".
        name: Name in the table.
        table: Factories by name; None stands for no objective.
        given: Arguments that are not options.
        options: Options of the objective by name.

    Returns:
        The objective; None where the table has None.

    Raises:
        ValueError: The name or an option is unknown.
    """
    if name not in table:
        raise ValueError(unknown(kind, name, table))
    factory = table[name]
    return with_options(name, _nothing, {}, options) if factory is None else with_options(name, factory, given, options)


def _nothing() -> None:
    """Stand in for the factory of "source-only" and "none", which has no options."""
