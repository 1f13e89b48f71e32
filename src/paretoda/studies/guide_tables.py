"""The tables and the figure of the study of guides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np

from paretoda.bench.store import Row
from paretoda.objectives import GUIDES
from paretoda.studies.agreement import ORACLES, SUM
from paretoda.studies.correlation import between_runs, mean, pooled, within_runs
from paretoda.studies.figures import COLOURS, panels, save
from paretoda.studies.page import Grid

OBJECTIVES = ("source", "alignment", "target")
_SUM = "linear"
"""Gradients are compared along the plain sum's runs, which no guide has bent."""

COSINES = (
    "Mean cosine of gradients for the encoder, at every candidate step of the plain sum's runs, evaluation mode. "
    "Oracle: the true cross-entropy on the same held-out target samples, and elsewhere: on the target's training part. "
    "± is the standard deviation over runs. Positive: share of checkpoints whose cosine with the held-out oracle is "
    "above 0. Objectives and their sum stand there for comparison: a guide below the sum adds nothing.",
)
CRITERIA = (
    "Spearman's correlation with the true target accuracy (oracle), guides' losses with their sign turned. All: over "
    "checkpoints, seeds and schemes of a task, then the mean over tasks. Later half: the same without the first "
    "half of each training, in which everything gets better together. Within runs: along each run, then the mean. "
    "Between runs: last checkpoints only. Checkpoints of a run are not independent: differences below 0.1 say little.",
)


@dataclass(frozen=True)
class Pull:
    """How a gradient agrees with the others, over all checkpoints.

    Args:
        cosines: column -> mean.
        spread: standard deviation over runs of the first oracle's.
        positive: share of checkpoints with a positive cosine with the first oracle.
    """

    cosines: Mapping[str, float]
    spread: float
    positive: float


def checkpoints(rows: Sequence[Row]) -> list[Row]:
    """One line a checkpoint, with its run's task, name and seed."""
    return [
        {"task": row["task"], "name": row["name"], "seed": row["seed"], **point}
        for row in rows
        if "error" not in row
        for point in row["points"]
    ]


def cosine_facts(lines: Sequence[Row]) -> dict[str, Pull]:
    """Objectives, their sum and guides, in their order."""
    own = [line for line in lines if line["name"] == _SUM]
    found = {}
    for name in (*OBJECTIVES, SUM, *GUIDES) if own else ():
        columns = {c: mean([line["cosines"][name][c] for line in own]) for c in (*ORACLES, *OBJECTIVES)}
        truth = [line["cosines"][name][ORACLES[0]] for line in own]
        runs: dict[tuple[str, int], list[float]] = {}
        for line, value in zip(own, truth, strict=True):
            runs.setdefault((line["task"], line["seed"]), []).append(value)
        spread = float(np.std([mean(values) for values in runs.values()], ddof=1)) if len(runs) > 1 else float("nan")
        found[name] = Pull(columns, spread, float(np.mean(np.array(truth) > 0)))
    return found


def cosine_grid(pull: Mapping[str, Pull]) -> Grid:
    """A row for each gradient."""
    columns = [*ORACLES, *OBJECTIVES]
    rows = []
    for name, fact in pull.items():
        first, *others = (f"{fact.cosines[column]:+.3f}" for column in columns)
        spread = f" ± {fact.spread:.3f}" if isfinite(fact.spread) else ""
        rows.append([_called(name), first + spread, f"{100 * fact.positive:.0f} %", *others])
    return Grid(["gradient of", columns[0], "positive", *columns[1:]], rows)


def _called(name: str) -> str:
    return f"guide {name}" if name in GUIDES else name


FIRST = "later half"
"""The column that orders the table: in the first half everything gets better, whatever is measured."""
Order = dict[str, dict[str, float]]
"""Criterion -> "later half", "all", "within runs", "between runs" and each task -> correlation."""


def criteria_facts(lines: Sequence[Row]) -> Order:
    """All criteria, the best first."""
    found: Order = {}
    half = max((line["step"] for line in lines), default=0) / 2
    later = [line for line in lines if line["step"] > half]
    for name in lines[0]["criteria"] if lines else ():
        tasks = pooled(lines, name)
        found[name] = {
            "later half": mean(list(pooled(later, name).values())),
            "all": mean(list(tasks.values())),
            "within runs": within_runs(lines, name),
            "between runs": between_runs(lines, name),
            **tasks,
        }
    return dict(sorted(found.items(), key=lambda item: -item[1][FIRST] if isfinite(item[1][FIRST]) else 2.0))


def criteria_grid(order: Order, tasks: Sequence[str]) -> Grid:
    """A row for each criterion."""
    columns = [FIRST, "all", "within runs", "between runs", *(tasks if len(tasks) > 1 else ())]
    rows = [[name, *(_number(facts.get(column)) for column in columns)] for name, facts in order.items()]
    return Grid(["criterion", *columns], rows)


def _number(value: float | None) -> str:
    return f"{value:+.2f}" if value is not None and isfinite(value) else "–"  # noqa: RUF001


def answers(pull: Mapping[str, Pull], order: Order) -> list[str]:
    """The result in sentences."""
    known = {name: fact for name, fact in pull.items() if name in GUIDES}
    if not known or not order:
        return ["Nothing could be measured."]
    best = max(known, key=lambda name: known[name].cosines[ORACLES[0]])
    total = pull[SUM].cosines[ORACLES[0]]
    said = [
        f"The gradient nearest to the truth's is that of the guide {best}, cosine "
        f"{known[best].cosines[ORACLES[0]]:+.2f}; the plain sum's has {total:+.2f}."
    ]
    first = next(iter(order))
    values = [name for name in order if name.startswith("guide ")]
    said.append(
        f"In the later half of the training, the value that orders checkpoints best is that of {first} "
        f"(Spearman {_number(order[first][FIRST])}); "
        f"of the guides, {values[0]} ({_number(order[values[0]][FIRST])})."
    )
    return said


def picture(directory: Path, pull: Mapping[str, Pull], order: Order) -> str:
    """Bars of both tables; the name of the file."""
    figure, axes = panels(1, 2, width=5.6, height=0.32 * max(len(order), len(pull)) + 1.4)
    names = list(pull)[::-1]
    values = [pull[name].cosines[ORACLES[0]] for name in names]
    spreads = [np.nan_to_num(pull[name].spread) for name in names]
    colours = [COLOURS[0] if _called(name).startswith("guide ") else "#9aa3b2" for name in names]
    axes[0].barh([_called(name) for name in names], values, xerr=spreads, color=colours)
    axes[0].set(xlabel="cosine with the true gradient (oracle)", title="Gradients")
    criteria = [name for name in order if isfinite(order[name][FIRST])][::-1]
    colours = [COLOURS[0] if name.startswith("guide ") else COLOURS[4] for name in criteria]
    axes[1].barh(criteria, [order[name][FIRST] for name in criteria], color=colours)
    axes[1].set(xlabel="Spearman with the true accuracy (oracle)", title="Values")
    for one in axes:
        one.axvline(0, color="black", linewidth=0.8)
    return save(figure, directory / "guides.svg")
