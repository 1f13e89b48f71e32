"""What the paths of a study say in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.studies.page import Grid

LOSSES = ("source", "alignment", "target")
Facts = dict[str, dict[str, list[float]]]
"""Path -> fact -> a number for each seed."""


def losses_of(row: Mapping[str, Any]) -> NDArray[np.float64]:
    """The losses along a path, shape (records, 3)."""
    return np.array([[point[name] for name in LOSSES] for point in row["points"]], dtype=np.float64)


def rising(path: NDArray[np.float64], share: float = 0.05) -> float:
    """The share of the stretches in which some loss rises by more than this share of its range along the path."""
    steps = np.diff(path, axis=0)
    return float((steps > share * np.maximum(np.ptp(path, axis=0), 1e-12)).any(axis=1).mean()) if len(steps) else 0.0


def facts_of(rows: Sequence[Mapping[str, Any]], ideal: str) -> Facts:
    """Ends, distances to the ideal path's end, and how often a loss rises, for every path and seed.

    Args:
        rows: name, seed and points of each path.
        ideal: name of the path that others are compared with.
    """
    found: Facts = {}
    for seed in sorted({row["seed"] for row in rows}):
        paths = {row["name"]: losses_of(row) for row in rows if row["seed"] == seed}
        span = _span(np.concatenate(list(paths.values())))
        best = paths.get(ideal)
        for row in (row for row in rows if row["seed"] == seed):
            path, fact = paths[row["name"]], found.setdefault(row["name"], _empty())
            for name, value in zip(LOSSES, path[-1].tolist(), strict=True):
                fact[name].append(value)
            fact["rising"].append(rising(path))
            fact["oracle_accuracy"].append(row["points"][-1]["oracle_accuracy"])
            if best is not None:
                fact["distance"].append(float(np.linalg.norm((path[-1] - best[-1]) / span)))
                fact["cosine"].append(_cosine((path[-1] - path[0]) / span, (best[-1] - best[0]) / span))
    return found


def _empty() -> dict[str, list[float]]:
    return {name: [] for name in (*LOSSES, "distance", "cosine", "rising", "oracle_accuracy")}


def _span(points: NDArray[np.float64]) -> NDArray[np.float64]:
    span: NDArray[np.float64] = np.ptp(points, axis=0)
    return np.where(span > 0, span, 1.0)


def _cosine(path: NDArray[np.float64], ideal: NDArray[np.float64]) -> float:
    length = float(np.linalg.norm(path) * np.linalg.norm(ideal))
    return float(path @ ideal) / length if length > 0 else 0.0


def table(facts: Facts) -> Grid:
    """A row for each path."""
    columns = ["path", "L_S", "L_D", "L_T", "distance", "cosine", "rising, %", "oracle accuracy, %"]
    keys = {
        **dict.fromkeys((*LOSSES, "distance", "cosine"), (1.0, 3)),
        "rising": (100.0, 0),
        "oracle_accuracy": (100.0, 1),
    }
    rows = [[name, *(_text(fact[key], *how) for key, how in keys.items())] for name, fact in facts.items()]
    return Grid(columns, rows)


def _text(values: Sequence[float], factor: float, digits: int) -> str:
    if not values:
        return ""
    scaled = factor * np.array(values)
    spread = f" ± {scaled.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{scaled.mean():.{digits}f}{spread}"
