"""The line of a step in metrics.jsonl, its numbers by name, and all of them as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from math import isfinite
from typing import Any

from paretoda.core.cells import csv_text
from paretoda.gradients import Report


def metrics_line(taken: int, report: Report) -> dict[str, Any]:
    """What is kept of a step."""
    return {
        "step": taken,
        "losses": {name: _number(loss) for name, loss in zip(report.names, report.losses.tolist(), strict=True)},
        "weights": report.weights,
        "move": report.move.value,
        "cosines": None if report.cosines is None else report.cosines.tolist(),
        "guide_loss": None if report.guide_loss is None else _number(report.guide_loss),
        "guide_cosines": None if report.guide_cosines is None else report.guide_cosines.tolist(),
        "finite": report.finite,
    }


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a step by name: loss/source, weight/source, cosine/source/target, guide/loss, guide/cosine/source.

    Args:
        line: of metrics.jsonl. What was not computed or is not finite has no name here.
    """
    names = list(line["losses"])
    found: dict[str, float | None] = {f"loss/{name}": loss for name, loss in line["losses"].items()}
    found |= {f"weight/{name}": weight for name, weight in line["weights"].items()}
    if line["cosines"] is not None:
        pairs = combinations(range(len(names)), 2)
        found |= {f"cosine/{names[i]}/{names[j]}": line["cosines"][i][j] for i, j in pairs}
    found["guide/loss"] = line["guide_loss"]
    for name, cosine in zip(names, line["guide_cosines"] or (), strict=False):
        found[f"guide/cosine/{name}"] = cosine
    return {name: value for name, value in found.items() if value is not None and isfinite(value)}


def metrics_table(lines: Iterable[Mapping[str, Any]]) -> str:
    """The text of a metrics.csv: a row for each step; a cell is empty where a number was not computed."""
    rows = [
        ({"step": line["step"], "move": line["move"], "finite": line.get("finite", True)}, scalars(line))
        for line in lines
    ]
    heads = list(dict.fromkeys(name for _, numbers in rows for name in numbers))
    table = [[*facts.values(), *(numbers.get(name, "") for name in heads)] for facts, numbers in rows]
    return csv_text([["step", "move", "finite", *heads], *table])


def _number(value: float) -> float | None:
    """None for NaN and infinity, which JSON has no words for."""
    return value if isfinite(value) else None
