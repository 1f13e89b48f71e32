"""Is it sensitive to the scale of the losses? L_S times λ0 and L_D times λ1, as in the paper's sensitivity figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from torch import Tensor

from paretoda.bench.jobs import describe_failures
from paretoda.bench.store import Row
from paretoda.errors import SettingsError
from paretoda.studies.instrumented_run import InstrumentedRun, Trial, run_trials
from paretoda.studies.page import Grid, Page, Section, make_panels, save_figure
from paretoda.studies.request import StudyRequest
from paretoda.training.loop import After
from paretoda.types import Objective, Snapshot, Source, Target

FACTORS = (0.1, 0.5, 1.0, 1.5)
"""Factors of the paper's figure."""
SCHEMES: dict[str, dict[str, Any]] = {
    "sum": {"scheme": "linear"},
    "ParetoDA as printed": {"scheme": "paretoda-paper", "guide": "tcm"},
    "paretoda": {"scheme": "paretoda"},
    "calibrated": {"scheme": "paretoda", "calibrate": True},
}


class Scaled(Objective):
    """An objective times a number, for the encoder and the head; its own networks learn as before.

    Args:
        inner: The objective.
        factor: The number.
    """

    def __init__(self, inner: Objective, factor: float) -> None:
        super().__init__()
        self.inner, self.factor = inner, factor
        self.encoder_updates, self.common = inner.encoder_updates, inner.common

    @property
    def refreshes(self) -> bool:
        """Whether the objective uses `refresh`."""
        return self.inner.refreshes

    @property
    def refresh_due(self) -> bool:
        """Whether the objective needs a refresh before the next step."""
        return self.inner.refresh_due

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the factor times the objective."""
        value: Tensor = self.factor * self.inner(source, target)
        return value

    def private_loss(self, source: Source, target: Target) -> Tensor | None:
        """Return the objective's own loss, unscaled."""
        return self.inner.private_loss(source, target)

    def advance(self, progress: float) -> None:
        """Pass the progress on to the objective."""
        self.inner.advance(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Pass the snapshot on to the objective."""
        self.inner.refresh(snapshot)


def measure(run: InstrumentedRun, after: Sequence[After]) -> Row:
    """Train with scaled losses, and return the oracle accuracy of the chosen and of the last model."""
    for name, factor in run.extra["factors"].items():
        run.step.objectives[name] = Scaled(run.step.objectives[name], factor)
    trained = run.train(after)
    last = run.oracle_accuracy()
    choice = trained.candidates.choice()
    if choice is not None:
        trained.candidates.put_back(choice.index, run.step)
    return {"oracle_accuracy": {"chosen": run.oracle_accuracy(), "last": last}}


def study_scales(request: StudyRequest) -> Page:
    """Run all pairs of factors under each scheme.

    Args:
        request: What the user asks for.

    Returns:
        The page of the study.
    """
    task = request.choose_task()
    factors = request.factors or FACTORS
    if min(factors) <= 0:
        raise SettingsError(f"a loss is multiplied by positive factors, not by {min(factors):g}; change --factors")
    common: dict[str, Any] = {"method": "dann", "target_loss": "tcm"}
    trials = [
        Trial(
            request.suite,
            task,
            f"{name}|{first}|{second}",
            seed,
            {**settings, **common},
            {"factors": {"source": first, "alignment": second}},
        )
        for seed in range(request.seeds)
        for name, settings in SCHEMES.items()
        for first in factors
        for second in factors
    ]
    rows = run_trials(request, trials, measure)
    values: dict[str, list[float]] = {}
    for row in rows:
        if "error" not in row:
            values.setdefault(row["name"], []).append(100 * row["oracle_accuracy"]["chosen"])
    means = {name: fmean(found) for name, found in values.items()}
    return Page(
        f"Scales of the losses on {request.suite}, {task}",
        [_describe(scheme, means) for scheme in SCHEMES],
        [_section(scheme, factors, values) for scheme in SCHEMES] + [_draw_picture(request, factors, means)],
        failures=describe_failures(rows),
    )


def _means_of(scheme: str, means: Mapping[str, float]) -> list[float]:
    return [value for name, value in means.items() if name.startswith(f"{scheme}|")]


def _describe(scheme: str, means: Mapping[str, float]) -> str:
    found = _means_of(scheme, means)
    if not found:
        return f"{scheme}: no result."
    low, high = min(found), max(found)
    return (
        f"{scheme}: from {low:.1f} to {high:.1f} per cent over all scales (a range of {high - low:.1f} points), "
        f"{fmean(found):.1f} on average."
    )


def _section(scheme: str, factors: Sequence[float], values: Mapping[str, list[float]]) -> Section:
    rows = []
    for first in factors:
        cells = [values.get(f"{scheme}|{first}|{second}", []) for second in factors]
        rows.append([f"λ0 = {first}", *(_cell(cell) for cell in cells)])
    caption = "Oracle accuracy in per cent of the model chosen without target labels, mean ± std over seeds."
    return Section(scheme, [caption], Grid(["", *(f"λ1 = {second}" for second in factors)], rows))


def _cell(values: Sequence[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{spread}" if values else ""


def _draw_picture(request: StudyRequest, factors: Sequence[float], means: Mapping[str, float]) -> Section:
    """Return heat maps on one colour scale."""
    figure, axes = make_panels(1, len(SCHEMES), width=3.6, height=3.4)
    low, high = (min(means.values()), max(means.values())) if means else (0.0, 1.0)
    for one, scheme in zip(axes, SCHEMES, strict=True):
        grid = [[means.get(f"{scheme}|{first}|{second}", np.nan) for second in factors] for first in factors]
        one.imshow(grid, vmin=low, vmax=high, cmap="viridis", origin="lower")
        one.grid(False)
        for (i, j), value in np.ndenumerate(np.array(grid)):
            dark = (value - low) / ((high - low) or 1) < 0.6
            one.text(j, i, f"{value:.1f}", ha="center", va="center", color="white" if dark else "black", fontsize=9)
        one.set_xticks(range(len(factors)), [str(factor) for factor in factors])
        one.set_yticks(range(len(factors)), [str(factor) for factor in factors])
        one.set(xlabel="λ1 (alignment)", ylabel="λ0 (source)", title=scheme)
    return Section(
        "All scales",
        ["Brighter is better; one scale of colours."],
        None,
        save_figure(figure, request.directory / "scales.svg"),
    )
