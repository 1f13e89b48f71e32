"""The table of a suite with one task by class, as the papers on VisDA show it."""

from __future__ import annotations

from collections.abc import Sequence

from paretoda.bench.store import Row


def class_rows(rows: Sequence[Row]) -> list[Row]:
    """Every run's accuracy on each class as if that were a task of its own; a failed run stays as it is, once a class.

    Args:
        rows: of one task.
    """
    classes = list(dict.fromkeys(name for row in rows for name in row.get("per_class", {}).get("chosen", {})))
    return [{**row, "task": name, "accuracy": _of_class(row, name)} for name in classes for row in rows]


def _of_class(row: Row, name: str) -> dict[str, float | None]:
    return {kind: recalls.get(name) for kind, recalls in row.get("per_class", {}).items()}
