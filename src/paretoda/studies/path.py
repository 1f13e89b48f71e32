"""Optimisation paths in the space of the losses, from one point, beside the ideal one that uses target labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from paretoda.bench.jobs import describe_failures
from paretoda.bench.store import Row
from paretoda.evaluation.oracle import OracleGuide, OracleLabels
from paretoda.studies.instrumented_run import InstrumentedRun, Trial, measure_losses, run_trials
from paretoda.studies.page import COLOURS, Grid, Page, Section, make_panels, save_figure, set_log_axis
from paretoda.studies.request import StudyRequest
from paretoda.training.loop import After

LOSSES = ("source", "alignment", "target")
Facts = dict[str, dict[str, list[float]]]
"""Path -> fact -> a number for each seed."""
_AXES = {"source": "source loss L_S", "alignment": "alignment L_D", "target": "target loss L_T"}
_PLANES = (("source", "alignment"), ("source", "target"), ("alignment", "target"))
_RECORDS = 25
IDEAL = "as printed, oracle guide"
CONTROL = "sum and the oracle's labels"
PATHS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sum": ({"scheme": "linear"}, {}),
    "EPO": ({"scheme": "epo"}, {}),
    "ParetoDA as printed": ({"scheme": "paretoda-paper", "guide": "tcm"}, {}),
    "paretoda": ({"scheme": "paretoda"}, {}),
    "paretoda, oracle guide": ({"scheme": "paretoda"}, {"oracle": True}),
    IDEAL: ({"scheme": "paretoda-paper"}, {"oracle": True}),
    CONTROL: ({"scheme": "linear"}, {"control": True}),
}
"""Name -> settings, and what no setting expresses: the paper's ideal path, and a sum that trains on the same labels."""
_CAPTION = (
    "All paths start at the star, with the same weights; the last point is the large one. Dashed: oracle, guided by "
    "target labels. Losses are those of the training parts in evaluation mode, each with its own run's discriminator.",
)
_NOTES = (
    "Mean ± std over seeds. Every loss is divided by its range over all paths. Distance: between the end and the ideal "
    "end. Cosine: of the whole displacement with the ideal path's. Rising: share of the stretches between two records "
    "in which some loss rises by more than 5 % of its range along the path. "
    "Rows with an oracle guide saw the labels of the held-out target; the control trains on the same labels.",
)


def path_losses(row: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the losses along a path, shape (records, 3)."""
    return np.array([[point[name] for name in LOSSES] for point in row["points"]], dtype=np.float64)


def rising_share(path: NDArray[np.float64], share: float = 0.05) -> float:
    """Share of the stretches in which some loss rises by more than `share` of its range along the path."""
    steps = np.diff(path, axis=0)
    return float((steps > share * np.maximum(np.ptp(path, axis=0), 1e-12)).any(axis=1).mean()) if len(steps) else 0.0


def summarise_paths(rows: Sequence[Mapping[str, Any]], ideal: str) -> Facts:
    """Return ends, distances to the ideal path's end, and how often a loss rises, for every path and seed.

    Args:
        rows: Name, seed and points of each path.
        ideal: Name of the path that others are compared with.
    """
    found: Facts = {}
    for seed in sorted({row["seed"] for row in rows}):
        paths = {row["name"]: path_losses(row) for row in rows if row["seed"] == seed}
        span = _span(np.concatenate(list(paths.values())))
        best = paths.get(ideal)
        for row in (row for row in rows if row["seed"] == seed):
            path, fact = paths[row["name"]], found.setdefault(row["name"], _empty())
            for name, value in zip(LOSSES, path[-1].tolist(), strict=True):
                fact[name].append(value)
            fact["rising"].append(rising_share(path))
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


def make_path_grid(facts: Facts) -> Grid:
    """Return a table with a row for each path."""
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


def draw_paths(directory: Path, rows: Sequence[Mapping[str, Any]], seed: int) -> str:
    """Draw the paths of one seed and return the name of the file.

    Args:
        directory: Directory of the study.
        rows: Results of all paths and seeds.
        seed: The seed.
    """
    figure, axes = make_panels(2, 2, width=5.6, height=4.2)
    own = [row for row in rows if row["seed"] == seed]
    for place, row in enumerate(own):
        colour, oracle = COLOURS[place % len(COLOURS)], "oracle" in row["name"]
        style: dict[str, Any] = {"color": colour, "linestyle": "--" if oracle else "-", "linewidth": 1.7, "alpha": 0.9}
        losses = path_losses(row)
        for one, plane in zip(axes, _PLANES, strict=False):
            x, y = (losses[:, LOSSES.index(name)] for name in plane)
            one.plot(x, y, marker=".", markersize=5, **style)
            one.plot(x[-1:], y[-1:], marker="o", markersize=10, color=colour, markeredgecolor="black", linestyle="")
        steps = [point["step"] for point in row["points"]]
        axes[3].plot(steps, [100 * point["oracle_accuracy"] for point in row["points"]], label=row["name"], **style)
    for one, plane in zip(axes, _PLANES, strict=False):
        start = [path_losses(own[0])[0, LOSSES.index(name)] for name in plane]
        one.plot(*[[value] for value in start], marker="*", markersize=16, color="black", zorder=5)
        one.set(xlabel=_AXES[plane[0]], ylabel=_AXES[plane[1]])
        for axis, name in zip(("x", "y"), plane, strict=True):
            if name != "alignment":  # falls over orders of magnitude; alignment may be below 0
                set_log_axis(one, axis)
    axes[3].set(xlabel="step", ylabel="target accuracy (oracle), %")
    figure.legend(*axes[3].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return save_figure(figure, directory / f"paths-seed-{seed}.svg")


def measure(run: InstrumentedRun, after: Sequence[After]) -> Row:
    """Train, and record the losses on whole sets before the first step and every few steps."""
    if run.extra.get("oracle"):
        run.step.guide = OracleGuide(run.oracle_labels_of("held-out-target")).to(run.step.device)
    if run.extra.get("control"):
        run = _train_on_labels(run)
    points = [_point(run, 0)]
    every = max(1, run.settings.steps // _RECORDS)

    def record(taken: int, _report: object) -> None:
        if taken % every == 0 or taken == run.settings.steps:
            points.append(_point(run, taken))

    run.train([record, *after])
    return {"points": points}


def _train_on_labels(run: InstrumentedRun) -> InstrumentedRun:
    """Move the held-out target samples into the training part, with their true labels as an objective."""
    pair = run.pair
    unknown = torch.full((len(pair.target_train),), -1)
    labels = torch.cat([unknown, run.oracle_labels_of("held-out-target")])
    run.step.objectives["oracle"] = OracleLabels(labels).to(run.step.device)
    return replace(run, pair=replace(pair, target_train=np.concatenate([pair.target_train, pair.target_held_out])))


def _point(run: InstrumentedRun, taken: int) -> dict[str, float]:
    snapshot = run.snapshot()
    truth = run.oracle_labels_of("held-out-target")
    held = snapshot.held_out_target.logits
    with torch.no_grad():
        oracle_loss = float(functional.cross_entropy(held, truth))
    return {
        "step": taken,
        **measure_losses(run.step, snapshot),
        "oracle_held_out_loss": oracle_loss,
        "oracle_accuracy": run.oracle_accuracy(),
    }


def study_path(request: StudyRequest) -> Page:
    """Follow every path from the same weights, for each seed.

    Args:
        request: What the user asks for.

    Returns:
        The page of the study.
    """
    task = request.choose_task()
    same = {"method": "dann", "target_loss": "tcm", "select": "last"}
    trials = [
        Trial(request.suite, task, name, seed, {**same, **settings}, extra)
        for seed in range(request.seeds)
        for name, (settings, extra) in PATHS.items()
    ]
    rows = run_trials(request, trials, measure)
    good = [row for row in rows if "error" not in row]
    facts = summarise_paths(good, IDEAL)
    figures = [
        Section(f"Paths, seed {seed}", _CAPTION, None, draw_paths(request.directory, good, seed))
        for seed in sorted({row["seed"] for row in good})
    ]
    return Page(
        f"Optimisation paths on {request.suite}, {task}",
        _answers(facts),
        [Section("Ends of the paths", _NOTES, make_path_grid(facts)), *figures],
        failures=describe_failures(rows),
    )


def _answers(facts: dict[str, dict[str, list[float]]]) -> list[str]:
    own = {name: fact["distance"] for name, fact in facts.items() if "oracle" not in name and fact["distance"]}
    if not own:
        return ["No path could be compared with the ideal one."]
    mean = {name: sum(values) / len(values) for name, values in own.items()}
    order = sorted(mean, key=mean.__getitem__)
    ranking = ", ".join(f"{name} ({mean[name]:.2f})" for name in order)
    return [
        f"The end nearest to the ideal one is that of {order[0]}; by distance: {ranking}.",
        "The paper says that ParetoDA ends nearest to the ideal and that the linear sum ends farthest.",
    ]
