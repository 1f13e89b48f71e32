"""Pareto fronts of DANN and CDAN: are they non-convex, as the paper's Fig. 2 says?

A weighted sum, minimised exactly, only reaches points of the convex hull, so a sweep of weights cannot show the part
of a front that it misses. EPO can: for every ray r_1 L_1 = r_2 L_2 it looks for the front there. Both are swept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.jobs import failures
from paretoda.bench.store import Row
from paretoda.studies.ask import Ask
from paretoda.studies.benched import with_steps
from paretoda.studies.figures import COLOURS, panels, save
from paretoda.studies.hull import Front, make_front
from paretoda.studies.lab import losses_now, open_lab
from paretoda.studies.page import Grid, Page, Section
from paretoda.studies.probe import probe
from paretoda.studies.trials import Trial, run_trials
from paretoda.training.loop import After

STEPS = 300
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Of the alignment in the weighted sum."""
RAYS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Preference r_D / r_S: how much smaller than the source's the alignment's loss is wanted."""
METHODS = ("dann", "cdan")
MEASURES = {"own": "by the run's own discriminator", "probe": "by fresh probes, cross-fitted"}
_SAME: dict[str, Any] = {
    "target_loss": "none",
    "select": "last",
    "dropout": 0.0,
    "options": ["alignment.warm_up=false"],
}


def measure(trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    """Train; the losses on whole sets at the end."""
    lab = open_lab(trial, data, work)
    lab.train(after)
    snapshot = lab.snapshot()
    losses = losses_now(lab.step, snapshot)
    return {
        "source": losses["source"],
        "own": losses["alignment"],
        "probe": probe(lab.step.objectives["alignment"], snapshot),
        "oracle_accuracy": lab.oracle_accuracy(),
    }


def _trials(ask: Ask, task: str) -> list[Trial]:
    found: list[tuple[str, dict[str, Any]]] = []
    for method in METHODS:
        for share in SHARES:
            weights = [round(2 * (1 - share), 6), round(2 * share, 6)]
            found.append((f"{method}|sum|{share:g}", {"method": method, "scheme": "linear", "loss_weights": weights}))
        for ray in RAYS:
            options = [*_SAME["options"], f"scheme.preference=[1,{ray:g}]"]
            found.append((f"{method}|EPO|{ray:g}", {"method": method, "scheme": "epo", "options": options}))
    return [
        Trial(ask.suite, task, name, seed, with_steps(ask, {**_SAME, **settings}, STEPS))
        for seed in range(ask.seeds)
        for name, settings in found
    ]


def front(ask: Ask) -> Page:
    """Sweep weights and rays, and test whether the fronts are convex."""
    task = ask.one()
    rows = run_trials(ask, _trials(ask, task), measure)
    good = [row for row in rows if "error" not in row]
    answers, figures = [], []
    for method in METHODS:
        fronts: dict[str, tuple[list[str], Front]] = {}
        for kind, by in MEASURES.items():
            names, samples = _samples(good, method, kind)
            if names:
                fronts[kind] = (names, make_front(samples))
                answers.append(f"{method.upper()}, L_D {by}: {fronts[kind][1].sentence}")
        if fronts:
            figures.append(
                Section(f"Front of {method.upper()}", _CAPTION, None, _picture(ask.directory, method, fronts))
            )
    table = Section("Points", ["Means over seeds; the share of L_D in the sum, or EPO's preference."], _table(good))
    return Page(f"Pareto fronts on {ask.suite}, {task}", answers, [*figures, table], failures=failures(rows))


_CAPTION = (
    "Mean over seeds with standard errors. Filled: not dominated. Line: lower convex hull. A ring: above the hull by "
    "more than two standard errors, so no weighted sum reaches it. The run's own discriminator is asked about samples "
    "that it was trained on, and below 0 it has been fooled; the probes are the same for all and asked about unseen "
    "samples.",
)


def _samples(rows: Sequence[Row], method: str, kind: str) -> tuple[list[str], NDArray[np.float64]]:
    """Names of the points that every seed has, and their losses, shape (n, seeds, 2)."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["name"].startswith(f"{method}|"):
            found.setdefault(row["name"], []).append((row["source"], row[kind]))
    most = max(map(len, found.values()), default=0)
    whole = {name: values for name, values in found.items() if len(values) == most}
    return list(whole), np.array(list(whole.values()), dtype=np.float64)


def _picture(directory: Path, method: str, fronts: dict[str, tuple[list[str], Front]]) -> str:
    figure, axes = panels(1, len(fronts), width=5.8, height=4.4)
    for one, (kind, (names, found)) in zip(axes, fronts.items(), strict=True):
        for place, (scheme, mark) in enumerate((("sum", "o"), ("EPO", "s"))):
            for best in (True, False):
                own = [i for i, n in enumerate(names) if f"|{scheme}|" in n and (i in found.best) == best]
                x, y = found.points[own].T
                errors = np.nan_to_num(found.errors[own]).T
                label = {"sum": "weighted sums", "EPO": "EPO, rays"}[scheme] if best else None
                face = COLOURS[place] if best else "white"
                look: dict[str, Any] = {
                    "color": COLOURS[place],
                    "markerfacecolor": face,
                    "alpha": 1.0 if best else 0.55,
                }
                one.errorbar(x, y, errors[1], errors[0], fmt=mark, label=label, markersize=6, elinewidth=0.8, **look)
        one.plot(*found.points[list(found.corners)].T, color="black", linewidth=1.2, label="lower convex hull")
        if found.tested and found.above:
            ring: dict[str, Any] = {"s": 190, "facecolors": "none", "edgecolors": COLOURS[4], "linewidths": 2.0}
            one.scatter(*found.points[list(found.above)].T, label="above the hull", **ring)
        one.set(xlabel="source loss L_S", ylabel="alignment L_D", title=f"{method.upper()}, {MEASURES[kind]}")
        one.legend(frameon=False)
    return save(figure, directory / f"front-{method}.svg")


def _table(rows: Sequence[Row]) -> Grid:
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = []
    for name in names:
        own = [row for row in rows if row["name"] == name]
        means = [np.mean([row[key] for row in own]) for key in ("source", "own", "probe")]
        method, scheme, number = name.split("|")
        accuracy = 100 * np.mean([row["oracle_accuracy"] for row in own])
        lines.append([f"{method}, {scheme} {number}", *(f"{value:.4f}" for value in means), f"{accuracy:.1f}"])
    return Grid(["point", "L_S", "L_D, own", "L_D, probe", "oracle accuracy, %"], lines)
