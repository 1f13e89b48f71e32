"""Comparison of contenders, paired over tasks and seeds, with tests that are valid for few tasks.

Seeds of one task share its data: they say how certain the task's own difference is, not what the next task will show.
So `by="task"`, the default, flips the signs of whole tasks; `by="run"` concerns these tasks only, under other seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import inf, isnan, nan, sqrt
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

Runs: TypeAlias = Mapping[tuple[str, int], float]
"""(task, seed) -> value, higher is better."""
By: TypeAlias = Literal["task", "run"]

EXACT = 16
"""Largest number of signs of which all patterns are counted; beyond, `DRAWS` of them are drawn."""
DRAWS = 20_000
TIE = 5e-4
"""Two tasks' means that differ by less are a tie: a table with one decimal shows no difference."""


@dataclass(frozen=True)
class Paired:
    """Result of a comparison.

    Args:
        difference: Mean over tasks of the tasks' mean differences.
        low: Lower end of its 95 % bootstrap interval; nan where there is only one run.
        high: Upper end.
        p: Two-sided p value of the sign-flip test.
        p_holm: The same, corrected for the comparisons made beside it.
        smallest_p: Smallest p value that so few tasks (or runs) can reach.
        wins: Number of tasks won.
        ties: Number of tasks within `TIE`.
        losses: Number of tasks lost.
        runs: Number of pairs of (task, seed) that both have.
    """

    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    smallest_p: float
    wins: int
    ties: int
    losses: int
    runs: int


def paired_differences(first: Runs, second: Runs) -> dict[str, list[float]]:
    """Return task -> first minus second for every seed that both have."""
    by_task: dict[str, list[float]] = {}
    for task, seed in first:
        if (task, seed) in second:
            by_task.setdefault(task, []).append(first[task, seed] - second[task, seed])
    return by_task


def compare(first: Runs, second: Runs, *, by: By = "task", seed: int = 0) -> Paired | None:
    """Compare the first contender with the second; None where they share no run.

    Args:
        first: Runs of the contender.
        second: Runs of the contender that it is compared with.
        by: Whose signs are flipped: whole tasks, or single runs within tasks.
        seed: Seed of the bootstrap and, beyond `EXACT` signs, of the test.
    """
    found = paired_differences(first, second)
    if not found:
        return None
    means = [float(np.mean(values)) for values in found.values()]
    single = [value / len(values) for values in found.values() for value in values]
    units = means if by == "task" else single
    low, high = bootstrap_interval(found, seed=seed)
    p = sign_flip_p(units, seed=seed)
    wins, losses = sum(mean >= TIE for mean in means), sum(mean <= -TIE for mean in means)
    return Paired(
        difference=float(np.mean(means)),
        low=low,
        high=high,
        p=p,
        p_holm=p,
        smallest_p=2.0 ** (1 - len(units)) if len(units) <= EXACT else 1 / (1 + DRAWS),
        wins=wins,
        ties=len(means) - wins - losses,
        losses=losses,
        runs=len(single),
    )


def compare_all(contenders: Mapping[str, Runs], base: str, *, by: By = "task", seed: int = 0) -> dict[str, Paired]:
    """Compare every contender with the base, with Holm's correction over them.

    Contenders that share no run with the base are left out.

    Args:
        contenders: Name -> runs.
        base: Name of the base.
        by: See `compare`.
        seed: See `compare`.
    """
    pairs = {name: compare(runs, contenders[base], by=by, seed=seed) for name, runs in contenders.items()}
    return correct_p_values({name: pair for name, pair in pairs.items() if pair is not None and name != base})


def correct_p_values(pairs: Mapping[str, Paired]) -> dict[str, Paired]:
    """Return the comparisons as one family, with `p_holm` filled in."""
    adjusted = holm([pair.p for pair in pairs.values()])
    return {name: replace(pair, p_holm=p) for (name, pair), p in zip(pairs.items(), adjusted, strict=True)}


def sign_flip_p(values: Sequence[float], *, seed: int = 0, draws: int = DRAWS) -> float:
    """Two-sided p value of the sum of paired differences when every sign is a fair coin.

    It is exact up to `EXACT` values; beyond, it is the share among drawn patterns, with the observed one among them.

    >>> sign_flip_p([1.0, 2.0, 3.0])
    0.25
    """
    observed, slack = abs(sum(values)), 1e-9 * sum(map(abs, values))  # equal sums must count as equal
    if len(values) <= EXACT:
        sums = np.array([values[0]])  # the first sign is fixed: a pattern and its negation are equally extreme
        for value in values[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= observed - slack))
    random, extreme, chunk = np.random.default_rng(seed), 0, 1000
    for start in range(0, draws, chunk):
        signs = 2.0 * random.integers(0, 2, (min(chunk, draws - start), len(values))) - 1
        extreme += int(np.sum(np.abs(signs @ np.asarray(values)) >= observed - slack))
    return (1 + extreme) / (1 + draws)


def bootstrap_interval(
    found: Mapping[str, Sequence[float]], *, seed: int = 0, draws: int = 4000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of the mean of the tasks' means; tasks are drawn first, then seeds within each."""
    counts = np.array([len(values) for values in found.values()])
    if counts.sum() < 2:
        return nan, nan
    table = np.zeros((len(counts), counts.max()))
    for row, values in zip(table, found.values(), strict=True):
        row[: len(values)] = values
    random = np.random.default_rng(seed)
    tasks = random.integers(0, len(counts), (draws, len(counts)))
    drawn = (random.random((*tasks.shape, counts.max())) * counts[tasks][..., None]).astype(int)
    kept = np.arange(counts.max()) < counts[tasks][..., None]
    means = (table[tasks[..., None], drawn] * kept).sum(-1) / counts[tasks]
    low, high = np.quantile(means.mean(-1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down correction; a p value that is nan was no comparison and stays nan.

    >>> holm([0.01, 0.04])
    [0.02, 0.04]
    """
    order = sorted((place for place, p in enumerate(ps) if not isnan(p)), key=lambda place: ps[place])
    adjusted, running = [nan] * len(ps), 0.0
    for rank, place in enumerate(order):
        running = max(running, min(1.0, (len(order) - rank) * ps[place]))
        adjusted[place] = running
    return adjusted


@dataclass(frozen=True)
class Ranking:
    """Average ranks over tasks, best first; 1 is best (Demšar, 2006).

    Args:
        ranks: Name -> average rank, best first.
        tasks: Number of tasks.
        p: p value of Friedman's test; nan below three contenders or two tasks.
        critical_difference: Critical difference of Nemenyi's test at 5 %; ranks that differ by less do not differ.
    """

    ranks: Mapping[str, float]
    tasks: int
    p: float
    critical_difference: float

    def groups(self) -> list[tuple[int, int]]:
        """Return first and last place of every maximal group whose ranks do not differ."""
        ranks = list(self.ranks.values())
        reach = [max(j for j, r in enumerate(ranks) if r - rank <= self.critical_difference) for rank in ranks]
        fresh = [True, *(later > earlier for earlier, later in pairwise(reach))]
        return [(start, end) for start, (end, new) in enumerate(zip(reach, fresh, strict=True)) if new and end > start]


def rank_contenders(scores: Mapping[str, Sequence[float]]) -> Ranking:
    """Rank two or more contenders.

    Args:
        scores: Name -> one value for each task, the same tasks in the same order.
    """
    values = np.array(list(scores.values())).T.round(9)
    ranks = rankdata(-values, axis=1)
    tasks, count = values.shape
    p = nan
    if count > 2 and tasks > 1:
        p = 1.0 if (ranks == ranks[:, :1]).all() else float(friedmanchisquare(*values.T).pvalue)
    means = sorted(zip(scores, ranks.mean(0).tolist(), strict=True), key=lambda pair: pair[1])
    return Ranking(dict(means), tasks, p, critical_q(count) * sqrt(count * (count + 1) / (6 * tasks)))


@lru_cache
def critical_q(count: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical value: the studentised range of so many contenders, over the square root of 2."""
    return float(studentized_range.ppf(1 - alpha, count, inf)) / sqrt(2)
