"""Pareto fronts of DANN and CDAN: are they non-convex, as the paper's Fig. 2 says?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.jobs import describe_failures
from paretoda.bench.store import Row
from paretoda.objectives import Cdan
from paretoda.studies.instrumented_run import InstrumentedRun, Trial, measure_losses, run_trials, subsample
from paretoda.studies.page import COLOURS, Grid, Page, Section, make_panels, save_figure
from paretoda.studies.request import StudyRequest
from paretoda.training.loop import After
from paretoda.types import Domain, Objective, Snapshot

Array = NDArray[np.float64]

_SURE = 2.0
"""Number of standard errors by which a point must lie above the hull."""
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
_CENTRES = 300
STEPS = 300
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Shares of the alignment in the weighted sum."""
RAYS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Preferences r_D / r_S: how much smaller than the source's loss the alignment's loss should be."""
METHODS = ("dann", "cdan")
MEASURES = {"own": "by the run's own discriminator", "probe": "by fresh probes, cross-fitted"}
_SAME: dict[str, Any] = {
    "target_loss": "none",
    "select": "last",
    "dropout": 0.0,
    "options": ["alignment.warm_up=false"],
}
_CAPTION = (
    "Mean over seeds with standard errors. Filled: not dominated. Line: lower convex hull. A ring: above the hull by "
    "more than two standard errors, so no weighted sum reaches it. The run's own discriminator is asked about samples "
    "that it was trained on, and below 0 it has been fooled; the probes are the same for all and asked about unseen "
    "samples.",
)


@dataclass(frozen=True, eq=False)
class Front:
    """Points in the plane of two losses, both to be minimised, and the analysis of their front.

    Args:
        points: Means over seeds, shape (n, 2).
        errors: Standard errors of the means, shape (n, 2); NaN with one seed.
        best: Indices of the points that no other dominates, ordered by the first loss.
        corners: Indices of the corners of the lower convex hull, ordered by the first loss; a subset of `best`.
        gaps: Distance of every point in `best` from the hull along its normal, both losses over their span.
        sigmas: Standard errors of the gaps, of the point and of the two corners below it together.
    """

    points: Array
    errors: Array
    best: tuple[int, ...]
    corners: tuple[int, ...]
    gaps: Array
    sigmas: Array

    @property
    def above(self) -> tuple[int, ...]:
        """Indices of the points that no weighted sum can reach: above the hull by more than two standard errors."""
        sure = self.gaps > np.maximum(_SURE * self.sigmas, 1e-9)
        return tuple(place for place, is_sure in zip(self.best, sure.tolist(), strict=True) if is_sure)

    @property
    def tested(self) -> bool:
        """Whether there is a spread over seeds to compare gaps with."""
        return bool(np.isfinite(self.errors).all())

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        between = len(self.best) - len(self.corners)
        (left, low), (right, high) = self.points[list(self.best)].min(axis=0), self.points[list(self.best)].max(axis=0)
        where = f"L_S from {left:.3g} to {right:.3g}, L_D from {low:.3g} to {high:.3g}"
        size = f"{len(self.best)} of {len(self.points)} points are not dominated ({where}), {between} above the hull"
        if not self.tested:
            return f"Cannot be told from one seed: {size}."
        found = len(self.above)
        largest = f"the largest gap is {100 * self.gaps.max(initial=0.0):.1f} % of the front's span"
        if found == 0:
            return f"No sign of a non-convex front: {size}, none by more than two standard errors; {largest}."
        return f"Non-convex: {size}, {found} by more than two standard errors; {largest}."


def non_dominated(points: Array) -> tuple[int, ...]:
    """Indices of the points that no other point dominates, ordered by the first loss."""
    order = sorted(range(len(points)), key=lambda place: (points[place, 0], points[place, 1]))
    found: list[int] = []
    for place in order:
        if not found or points[place, 1] < points[found[-1], 1]:
            found.append(place)
    return tuple(found)


def lower_hull(points: Array, best: tuple[int, ...]) -> tuple[int, ...]:
    """Indices among `best` that minimise some weighted sum of the losses (a monotone chain).

    Args:
        points: Points, shape (n, 2).
        best: Indices ordered by the first loss.
    """
    chain: list[int] = []
    for place in best:
        while len(chain) > 1 and _turn(points[chain[-2]], points[chain[-1]], points[place]) <= 0:
            chain.pop()
        chain.append(place)
    return tuple(chain)


def _turn(first: Array, second: Array, third: Array) -> float:
    """Positive where the path turns left: the middle point is below the line through the others."""
    a, b = second - first, third - first
    return float(a[0] * b[1] - a[1] * b[0])


def make_front(samples: Array) -> Front:
    """Return the front of n points.

    Args:
        samples: Losses of each point and seed, shape (n, seeds, 2).
    """
    points, seeds = samples.mean(axis=1), samples.shape[1]
    errors = samples.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.full_like(points, np.nan)
    best = non_dominated(points)
    corners = lower_hull(points, best)
    span = np.ptp(points[list(best)], axis=0)
    span = np.where(span > 0, span, 1.0)
    pairs = [_gap(place, points / span, errors / span, corners) for place in best]
    return Front(points, errors, best, corners, np.array([g for g, _ in pairs]), np.array([s for _, s in pairs]))


def _gap(place: int, points: Array, errors: Array, corners: tuple[int, ...]) -> tuple[float, float]:
    """Return the distance from the hull's edge below the point, and its standard error."""
    if place in corners:
        return 0.0, 0.0
    right = next(i for i, corner in enumerate(corners) if points[corner, 0] > points[place, 0])
    first, second = corners[right - 1], corners[right]
    edge = points[second] - points[first]
    normal = np.array([-edge[1], edge[0]]) / hypot(*edge.tolist())
    away = points[place] - points[first]
    share = float(np.clip(away @ edge / (edge @ edge), 0, 1))
    parts = ((1.0, place), (1 - share, first), (share, second))
    variance = sum(factor**2 * float(normal**2 @ errors[who] ** 2) for factor, who in parts)
    return float(normal @ away), float(np.sqrt(variance))


def probe_divergence(alignment: Objective, snapshot: Snapshot) -> float:
    """Return what the best probe can tell of the domain, log 2 minus its cross-entropy; never negative.

    Discriminators of different runs have learned differently well; this measure is the same for all.

    Args:
        alignment: Alignment of the run; CDAN's probe sees features and predictions, all others the features.
        snapshot: Snapshot of the model.
    """
    rows = [_probe_rows(alignment, subsample(domain)) for domain in (snapshot.source, snapshot.target)]
    return cross_fit_divergence(rows[0], rows[1])


def _probe_rows(alignment: Objective, domain: Domain) -> NDArray[np.float64]:
    seen = alignment.combine(domain) if isinstance(alignment, Cdan) else domain.features
    return seen.detach().double().numpy()


def cross_fit_divergence(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Return the divergence that the best probe proves on the half of the rows that it was not fitted on.

    The probes are logistic regressions of the rows and of Gaussian kernels around some of them, at several penalties.
    The divergence is a supremum over discriminators, so the best counts; one that knows nothing proves 0.

    Args:
        source: Rows of the source, shape (n, d).
        target: Rows of the target, shape (m, d).
    """
    rows = np.concatenate([source, target])
    rows = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-8)
    labels = np.repeat([0, 1], [len(source), len(target)])
    return max([0.0, *(_held_out_gain(seen, labels, c) for seen in (rows, _kernels(rows)) for c in _PENALTIES)])


def _kernels(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussians exp(-|x - c|² / median) around some rows c, each column with unit deviation."""
    centres = rows[np.random.default_rng(1).permutation(len(rows))[:_CENTRES]]
    squares = (rows**2).sum(1)[:, None] + (centres**2).sum(1)[None, :] - 2 * rows @ centres.T
    near = np.exp(-squares / np.median(squares))
    scaled: NDArray[np.float64] = (near - near.mean(axis=0)) / (near.std(axis=0) + 1e-8)
    return scaled


def _held_out_gain(rows: NDArray[np.float64], labels: NDArray[np.int64], penalty: float) -> float:
    """Return log 2 minus the balanced cross-entropy on rows that the probe was not fitted on."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (slow to import)

    fold = np.random.default_rng(0).permutation(len(rows)) % 2
    losses = np.empty(len(rows))
    for part in (0, 1):
        model = LogisticRegression(C=penalty, class_weight="balanced", max_iter=5000, tol=1e-3)
        model.fit(rows[fold != part], labels[fold != part])
        unseen = fold == part
        losses[unseen] = -model.predict_log_proba(rows[unseen])[np.arange(unseen.sum()), labels[unseen]]
    return math.log(2) - float(losses[labels == 0].mean() + losses[labels == 1].mean()) / 2


def measure(run: InstrumentedRun, after: Sequence[After]) -> Row:
    """Train, and return the losses on whole sets at the end."""
    run.train(after)
    snapshot = run.snapshot()
    losses = measure_losses(run.step, snapshot)
    return {
        "source": losses["source"],
        "own": losses["alignment"],
        "probe": probe_divergence(run.step.objectives["alignment"], snapshot),
        "oracle_accuracy": run.oracle_accuracy(),
    }


def _make_trials(request: StudyRequest, task: str) -> list[Trial]:
    found: list[tuple[str, dict[str, Any]]] = []
    for method in METHODS:
        for share in SHARES:
            weights = [round(2 * (1 - share), 6), round(2 * share, 6)]
            found.append((f"{method}|sum|{share:g}", {"method": method, "scheme": "linear", "loss_weights": weights}))
        for ray in RAYS:
            options = [*_SAME["options"], f"scheme.preference=[1,{ray:g}]"]
            found.append((f"{method}|EPO|{ray:g}", {"method": method, "scheme": "epo", "options": options}))
    return [
        Trial(request.suite, task, name, seed, {**_SAME, **settings})
        for seed in range(request.seeds)
        for name, settings in found
    ]


def study_front(request: StudyRequest) -> Page:
    """Sweep weights and rays, and test whether the fronts are convex.

    Args:
        request: What the user asks for.

    Returns:
        The page of the study.
    """
    task = request.choose_task()
    rows = run_trials(request, _make_trials(request, task), measure, steps=STEPS)
    good = [row for row in rows if "error" not in row]
    answers, figures = [], []
    for method in METHODS:
        fronts: dict[str, tuple[list[str], Front]] = {}
        for kind, by in MEASURES.items():
            names, samples = _collect_samples(good, method, kind)
            if names:
                fronts[kind] = (names, make_front(samples))
                answers.append(f"{method.upper()}, L_D {by}: {fronts[kind][1].sentence}")
        if fronts:
            figures.append(
                Section(f"Front of {method.upper()}", _CAPTION, None, _draw_picture(request.directory, method, fronts))
            )
    table = Section("Points", ["Means over seeds; the share of L_D in the sum, or EPO's preference."], _make_grid(good))
    return Page(
        f"Pareto fronts on {request.suite}, {task}", answers, [*figures, table], failures=describe_failures(rows)
    )


def _collect_samples(rows: Sequence[Row], method: str, kind: str) -> tuple[list[str], NDArray[np.float64]]:
    """Return names of the points that every seed has, and their losses, shape (n, seeds, 2)."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["name"].startswith(f"{method}|"):
            found.setdefault(row["name"], []).append((row["source"], row[kind]))
    most = max(map(len, found.values()), default=0)
    whole = {name: values for name, values in found.items() if len(values) == most}
    return list(whole), np.array(list(whole.values()), dtype=np.float64)


def _draw_picture(directory: Path, method: str, fronts: dict[str, tuple[list[str], Front]]) -> str:
    figure, axes = make_panels(1, len(fronts), width=5.8, height=4.4)
    for one, (kind, (names, found)) in zip(axes, fronts.items(), strict=True):
        for place, (scheme, mark) in enumerate((("sum", "o"), ("EPO", "s"))):
            for best in (True, False):
                own = [i for i, n in enumerate(names) if f"|{scheme}|" in n and (i in found.best) == best]
                x, y = found.points[own].T
                errors = np.nan_to_num(found.errors[own]).T
                label = {"sum": "weighted sums", "EPO": "EPO, rays"}[scheme] if best else None
                face = COLOURS[place] if best else "white"
                style: dict[str, Any] = {
                    "color": COLOURS[place],
                    "markerfacecolor": face,
                    "alpha": 1.0 if best else 0.55,
                }
                one.errorbar(x, y, errors[1], errors[0], fmt=mark, label=label, markersize=6, elinewidth=0.8, **style)
        one.plot(*found.points[list(found.corners)].T, color="black", linewidth=1.2, label="lower convex hull")
        if found.tested and found.above:
            ring: dict[str, Any] = {"s": 190, "facecolors": "none", "edgecolors": COLOURS[4], "linewidths": 2.0}
            one.scatter(*found.points[list(found.above)].T, label="above the hull", **ring)
        one.set(xlabel="source loss L_S", ylabel="alignment L_D", title=f"{method.upper()}, {MEASURES[kind]}")
        one.legend(frameon=False)
    return save_figure(figure, directory / f"front-{method}.svg")


def _make_grid(rows: Sequence[Row]) -> Grid:
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = []
    for name in names:
        own = [row for row in rows if row["name"] == name]
        means = [np.mean([row[key] for row in own]) for key in ("source", "own", "probe")]
        method, scheme, number = name.split("|")
        accuracy = 100 * np.mean([row["oracle_accuracy"] for row in own])
        lines.append([f"{method}, {scheme} {number}", *(f"{value:.4f}" for value in means), f"{accuracy:.1f}"])
    return Grid(["point", "L_S", "L_D, own", "L_D, probe", "oracle accuracy, %"], lines)
