"""The pages of a run, of several runs and of the demo: one file, no network, every name escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from paretoda.report.charts import Points, draw_chart, draw_legend, draw_strip
from paretoda.report.confusion import draw_matrix
from paretoda.report.facts import (
    RunFacts,
    cosine_curves,
    count_classes,
    count_conflicts,
    count_moves,
    guide_curve,
    named_curves,
    score_curves,
)
from paretoda.report.scatter import draw_panels

if TYPE_CHECKING:
    from jinja2 import Environment

_NAMES = ("frame.html", "run.html", "runs.html", "parts.html", "bench.html", "style.css", "bench.css")
SHOWN_PREDICTIONS = 12
"""Number of the least certain predictions on the page; predictions.csv has all."""
_NOTHING = "–"  # noqa: RUF001


def render_template(template: str, **values: Any) -> str:
    """Return the page that a template makes of these values; a missing value is an error.

    Args:
        template: File in the folder `templates`.
        **values: Values that the template uses.
    """
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined  # noqa: PLC0415 - not before a page is written

    folder = files("paretoda.report") / "templates"
    loader = DictLoader({name: (folder / name).read_text(encoding="utf-8") for name in _NAMES})
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["percent"] = _percent
    environment.filters["number"] = _number
    return environment


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"  # noqa: RUF001


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value + 0.0:.{digits}f}"  # noqa: RUF001  (and no minus zero)


@dataclass(frozen=True)
class Comparison:
    """A table that stands above everything else.

    Args:
        heading: What is compared.
        columns: Headings.
        rows: Texts; the first column names the row.
        note: How the numbers were obtained.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def render_run_page(run: RunFacts, comparison: Comparison | None = None) -> str:
    """Return the HTML of a run; with a comparison, its table comes first and the run is the example below it.

    Args:
        run: Facts of the run.
        comparison: Comparison of several runs.
    """
    plane = run.pictures.plane
    classified = [row for row in run.predictions if isfinite(row[2])]
    return render_template(
        "run.html",
        title=run.title,
        run=run,
        comparison=comparison,
        tiles=_tiles(run),
        charts=_draw_charts(run),
        conflicts=count_conflicts(cosine_curves(run.history)),
        moves=count_moves(run.history),
        strip=_draw_moves(run),
        classes=count_classes(classified),
        unsure=sorted(classified, key=lambda row: row[2])[:SHOWN_PREDICTIONS],
        panels=draw_panels(plane) if plane is not None else [],
        confusions=[(confusion, draw_matrix(confusion)) for confusion in run.pictures.confusions],
        steps=len(run.history),
    )


def _tiles(run: RunFacts) -> list[tuple[str, str]]:
    """Return the most important numbers, each with its description."""
    tiles = [
        (f"{100 * confusion.accuracy:.1f} %", f"accuracy, {confusion.heading}")
        for confusion in sorted(run.pictures.confusions, key=lambda one: not one.oracle)
    ]
    tiles += [
        (f"{100 * overlap.miou:.1f} %", f"mean IoU, {overlap.heading}")
        for overlap in sorted(run.pictures.overlaps, key=lambda one: not one.oracle)
    ]
    if run.predictions:
        tiles.append((f"{len(run.predictions):,}", "target samples predicted"))
    if confidences := [confidence for _, _, confidence in run.predictions if isfinite(confidence)]:
        tiles.append((f"{100 * sum(confidences) / len(confidences):.1f} %", "mean confidence on the target"))
    if run.novelty is not None:
        threshold, share = run.novelty
        tiles.append((f"{100 * share:.1f} %", f"of the target unknown, novelty above {threshold:.4f}"))
    if run.chosen is not None:
        tiles.append((f"{run.chosen}", f"step of the chosen model, of {len(run.history)}"))
    return tiles


def _draw_moves(run: RunFacts) -> Markup:
    """Return the moves over time, with a legend."""
    if not run.history:
        return Markup("")
    order = [name for name, _, _ in count_moves(run.history)]
    return draw_strip([str(line["move"]) for line in run.history], order) + draw_legend(order)


def _draw_charts(run: RunFacts) -> dict[str, Markup]:
    """Return the picture of everything that was recorded; an empty text for what was not."""
    wanted: dict[str, Mapping[str, Any]] = {
        "losses": named_curves(run.history, "losses"),
        "weights": named_curves(run.history, "weights"),
        "cosines": cosine_curves(run.history),
        "guide": guide_curve(run.history),
    }
    nothing, scores = Markup(""), score_curves(run.candidates)
    drawn = {
        key: draw_chart(curves, label=f"{key} over steps") if curves else nothing for key, curves in wanted.items()
    }
    chosen = draw_chart(scores, label="Label-free scores over steps", mark=run.chosen, dots=True)
    return {**drawn, "candidates": chosen if scores else nothing}


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
        "runs.html", title=title, count=len(runs), tables=tables, charts=_draw_comparisons(runs), shared=shared
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
        rows[name] = {**accuracies, "chosen step": _text(run.chosen), **scores}
    note = "Scores need no labels: higher is better, each on a scale of its own, and comparable on the same data only."
    if any(confusion.oracle for run in runs.values() for confusion in run.pictures.confusions):
        note += " Oracle: target labels were used for that column, never for training or choosing."
    return _make_table("Results", rows, note)


def _make_table(heading: str, rows: Mapping[str, Mapping[str, str]], note: str) -> Comparison:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    texts = [[name, *(row.get(column, _NOTHING) for column in columns)] for name, row in rows.items()]
    return Comparison(heading, ["run", *columns], texts, note)


def _draw_comparisons(runs: Mapping[str, RunFacts]) -> list[tuple[str, str, Markup]]:
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
