"""The line of a step in metrics.jsonl."""

from __future__ import annotations

from math import isfinite
from typing import Any

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


def _number(value: float) -> float | None:
    """None for NaN and infinity, which JSON has no words for."""
    return value if isfinite(value) else None
