"""Of several variants of a run, such as learning rates or loss weights, the one that label-free scores prefer."""

from __future__ import annotations

from collections.abc import Sequence

from paretoda.bench.store import Row
from paretoda.evaluation.choice import ENSEMBLE, choose
from paretoda.job.directory import RunError


def select_variants(rows: Sequence[Row]) -> list[Row]:
    """One row for every suite, task, contender and seed: its best variant by its judge, or the ensemble's mean rank."""
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["suite"], row["task"], row["name"], row["seed"]), []).append(row)
    return [_best(group) for group in groups.values()]


def _best(group: list[Row]) -> Row:
    finished = [row for row in group if "error" not in row]
    if len(finished) < 2:
        return (finished or group)[0]
    judge = next((row["judge"] for row in reversed(group) if row.get("judge")), "")
    witnesses = ENSEMBLE if judge in ("", "ensemble") else (judge,)
    for row in finished:
        if missing := [name for name in witnesses if (row.get("scores") or {}).get(name) is None]:
            told = f"{row['name']!r} ran {row['task']} in several variants, one without the score {missing[0]!r}"
            raise RunError(f"{told}; remove its line, and the run is made again")
    scores = {name: [row["scores"][name] for row in finished] for name in witnesses}
    return {**finished[choose(scores, judge or "ensemble").index], "judge": judge}
