"""The page of several runs: their different settings, their scores, and their curves in common pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup

from paretoda.report.charts import Points, draw_chart
from paretoda.report.facts import RunFacts, guide_curve, named_curves
from paretoda.report.page import Comparison, render_template

_NOTHING = "–"  # noqa: RUF001


def render_runs_page(runs: Mapping[str, RunFacts], *, title: str) -> str:
    """Return the HTML of several runs.

    Args:
        runs: Name -> facts, in the order of the page.
        title: Title of the page.
    """
    settings = [{**run.inputs, **run.settings} for run in runs.values()]
    keys = list(dict.fromkeys(key for one in settings for key in one))
    shared = {
        key: settings[0].get(key) for key in keys if all(one.get(key) == settings[0].get(key) for one in settings)
    }
    tables = [
        _make_results(runs),
        _make_table(
            "Settings that differ",
            {
                name: {key: _text(own.get(key)) for key in keys if key not in shared}
                for name, own in zip(runs, settings, strict=True)
            },
            "All others are below." if len(shared) < len(keys) else "None: the runs have the same settings.",
        ),
    ]
    return render_template(
        "runs.html", title=title, count=len(runs), tables=tables, charts=_draw_charts(runs), shared=shared
    )


def _make_results(runs: Mapping[str, RunFacts]) -> Comparison:
    rows: dict[str, dict[str, str]] = {}
    for name, run in runs.items():
        accuracies = {
            f"{'oracle accuracy, target' if confusion.oracle else f'accuracy, {confusion.heading}'}, %": (
                f"{100 * confusion.accuracy:.1f}"
            )
            for confusion in sorted(run.pictures.confusions, key=lambda one: not one.oracle)
        }
        scores = {score: f"{value + 0.0:.4f}" for score, value in run.scores.items() if isfinite(value)}
        rows[name] = {**accuracies, "chosen step": _text(run.chosen or None), **scores}
    note = "Scores need no labels: higher is better, each on a scale of its own, and comparable on the same data only."
    if any(confusion.oracle for run in runs.values() for confusion in run.pictures.confusions):
        note += " Oracle: target labels were used for that column, never for training or choosing."
    return _make_table("Results", rows, note)


def _make_table(heading: str, rows: Mapping[str, Mapping[str, str]], note: str) -> Comparison:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    texts = [[name, *(row.get(column, _NOTHING) for column in columns)] for name, row in rows.items()]
    return Comparison(heading, ["run", *columns], texts, note)


def _draw_charts(runs: Mapping[str, RunFacts]) -> list[tuple[str, str, Markup]]:
    """Return one curve for each run, of what can be compared without labels."""

    def loss(name: str) -> Callable[[RunFacts], Points]:
        return lambda run: named_curves(run.history, "losses").get(name, [])

    wanted: Sequence[tuple[str, str, Callable[[RunFacts], Points]]] = [
        (
            "Guide (L_val)",
            "The loss on held-out target samples.",
            lambda run: guide_curve(run.history).get("guide", []),
        ),
        ("Target loss", "On the target's training samples.", loss("target")),
        ("Alignment", "How far the domains are apart, as the alignment measures it.", loss("alignment")),
        ("Source loss", "On the source's labels.", loss("source")),
    ]
    drawn = []
    for heading, about, pick in wanted:
        curves = {name: pick(run) for name, run in runs.items()}
        found = {name: points if points else [(1, float("nan"))] for name, points in curves.items()}
        if any(curves.values()):
            drawn.append((heading, about, draw_chart(found, label=f"{heading} of each run")))
    return drawn


def _text(value: Any) -> str:
    return _NOTHING if value is None else str(value)
