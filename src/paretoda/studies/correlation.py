"""Which numbers that need no target labels order checkpoints as the true accuracy does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import rankdata

Line = Mapping[str, Any]
"""A checkpoint: task, name (of the scheme), seed, oracle_accuracy, and `criteria`: name -> number, higher is better."""


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of the ranks, ties sharing theirs; NaN where one side is constant or has fewer than three numbers."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if isfinite(a) and isfinite(b)]
    if len(pairs) < 3:
        return nan
    one, other = (rankdata([pair[side] for pair in pairs]) for side in (0, 1))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return nan
    return float(np.corrcoef(one, other)[0, 1])


def pooled(lines: Sequence[Line], criterion: str) -> dict[str, float]:
    """For each task, the correlation over all its checkpoints, seeds and schemes."""
    return _grouped(lines, criterion, lambda line: str(line["task"]))


def within_runs(lines: Sequence[Line], criterion: str) -> float:
    """The mean of the correlations along single runs: does it find the checkpoint to stop at?"""
    return mean(list(_grouped(lines, criterion, lambda line: (line["task"], line["name"], line["seed"])).values()))


def between_runs(lines: Sequence[Line], criterion: str) -> float:
    """The mean over tasks of the correlations over last checkpoints: does it find the run to keep?"""
    last = {(line["task"], line["name"], line["seed"]): line for line in lines}
    return mean(list(pooled(list(last.values()), criterion).values()))


def mean(values: Sequence[float]) -> float:
    """Of those that are numbers; NaN where there is none."""
    known = [value for value in values if isfinite(value)]
    return fmean(known) if known else nan


def _grouped(lines: Sequence[Line], criterion: str, by: Callable[[Line], Any]) -> dict[Any, float]:
    groups: dict[Any, list[Line]] = {}
    for line in lines:
        if criterion in line["criteria"]:
            groups.setdefault(by(line), []).append(line)
    return {
        key: spearman([line["criteria"][criterion] for line in group], [line["oracle_accuracy"] for line in group])
        for key, group in groups.items()
    }
