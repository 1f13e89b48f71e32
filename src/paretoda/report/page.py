"""The page of a run and of the demo: one file, no network, every name escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from paretoda.report.curves import chart
from paretoda.report.facts import (
    RunFacts,
    class_counts,
    cosine_curves,
    guide_curve,
    moves,
    named_curves,
    score_curves,
)

SHOWN_PREDICTIONS = 25
"""So many of the least certain predictions are on the page; predictions.csv has all."""


@dataclass(frozen=True)
class Comparison:
    """A table that stands above everything else.

    Args:
        heading: what is compared.
        columns: headings.
        rows: texts, the first column names the row.
        note: how the numbers came about.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def run_page(run: RunFacts, comparison: Comparison | None = None) -> str:
    """The HTML of a run; with a comparison, its table comes first and the run is the example below it.

    Args:
        run: plain values, see `RunFacts`.
        comparison: of several runs.
    """
    unsure = sorted(run.predictions, key=lambda row: row[2])[:SHOWN_PREDICTIONS]
    return (
        _environment()
        .get_template("run.html")
        .render(
            run=run,
            comparison=comparison,
            charts=_charts(run),
            moves=moves(run.history),
            classes=class_counts(run.predictions),
            unsure=unsure,
            steps=len(run.history),
        )
    )


def _charts(run: RunFacts) -> list[Mapping[str, Any]]:
    """Heading, one sentence and picture of everything that was recorded."""
    wanted = [
        ("Losses", "What each objective measured, step by step.", named_curves(run.history, "losses")),
        ("Weights", "What each loss was multiplied by; equal weights are 1.", named_curves(run.history, "weights")),
        ("Cosines of gradients", "Below 0 two objectives pull against each other.", cosine_curves(run.history)),
        ("Guide", "The loss on held-out target samples, which steers the weights.", guide_curve(run.history)),
        ("Candidates", "Label-free scores, each moved to 0..1; the line is the choice.", score_curves(run.candidates)),
    ]
    return [
        {"heading": heading, "about": about, "picture": _picture(heading, curves, run)}
        for heading, about, curves in wanted
        if curves
    ]


def _picture(heading: str, curves: Mapping[str, Any], run: RunFacts) -> Markup:
    candidates = heading == "Candidates"
    return chart(curves, label=f"{heading} over steps", mark=run.chosen if candidates else None, dots=candidates)


def _environment() -> Environment:
    folder = files("paretoda.report") / "templates"
    names = ("run.html", "style.css")
    loader = DictLoader({name: (folder / name).read_text(encoding="utf-8") for name in names})
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
