"""A run in the cell of a notebook: small tables and curves, styled inline because a notebook has no style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup

from paretoda.report.charts import Points, thin_points, value_limits
from paretoda.report.facts import named_curves

_WIDTH, _HEIGHT, _MOST = 140, 24, 70
_WARNING = "Scores without labels, higher is better. None of them sees a model that is sure, diverse and wrong."
_BLOCK = Markup('<div style="max-width:60em"><p><b>{}</b><br>{}</p>{}{}</div>')
_TABLE = Markup('<table style="display:inline-table;vertical-align:top;margin:0 2em 1em 0">{}{}</table>')
_ROW = Markup("<tr>{}</tr>")
_HEAD = Markup('<th style="text-align:left">{}</th>')
_CELL = Markup('<td style="text-align:left">{}</td>')


@dataclass(frozen=True)
class CellFacts:
    """What a cell shows of a finished run.

    Args:
        heading: What was trained.
        kept: Which step's model was kept, and its classes.
        history: One line per step: step, losses, weights.
        scores: Scores of the kept model, without labels.
        sentences: Sentences for the user.
        alarm: The sentence among them that must not be overlooked; None where there is none.
    """

    heading: str
    kept: str
    history: Sequence[Mapping[str, Any]]
    scores: Mapping[str, float]
    sentences: Sequence[str]
    alarm: str | None = None


def render_run_cell(facts: CellFacts) -> str:
    """Return the HTML of a cell; every name is escaped, nothing is fetched, there is no script."""
    tables = [_losses(facts.history)] if facts.history else []
    if facts.scores:
        rows = [(name, _number(value, ".4f")) for name, value in facts.scores.items()]
        tables.append(_table(("label-free score", ""), rows) + Markup("<p><small>{}</small></p>").format(_WARNING))
    return str(_BLOCK.format(facts.heading, facts.kept, Markup("").join(tables), _list_sentences(facts)))


def _losses(history: Sequence[Mapping[str, Any]]) -> Markup:
    """Return first and last value, mean weight and curve of each loss."""
    curves, weights = named_curves(history, "losses"), named_curves(history, "weights")
    rows = [
        (
            name,
            *(_number(value, ".3g") for value in (points[0][1], points[-1][1], _mean(weights[name]))),
            draw_spark(points),
        )
        for name, points in curves.items()
    ]
    return _table(("loss", "first", "last", "mean weight", "over the steps"), rows)


def draw_spark(points: Points) -> Markup:
    """Return a curve without axes, in the colour of the surrounding text; non-finite values are left out."""
    finite = [(x, y) for x, y in thin_points(points, _MOST) if isfinite(y)]
    if not finite:
        return Markup("")
    (left, right), (low, high) = (finite[0][0], finite[-1][0]), value_limits([y for _, y in finite])
    across, up = (right - left) or 1, (high - low) or 1
    at = [
        (_WIDTH * (x - left) / across, 2 + (_HEIGHT - 4) * (1 - (min(max(y, low), high) - low) / up)) for x, y in finite
    ]
    return Markup(
        '<svg width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">'
        '<polyline points="{2}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    ).format(_WIDTH, _HEIGHT, " ".join(f"{x:.1f},{y:.1f}" for x, y in at))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    head = _ROW.format(Markup("").join(_HEAD.format(text) for text in heads))
    body = Markup("").join(_ROW.format(Markup("").join(_CELL.format(text) for text in row)) for row in rows)
    return _TABLE.format(head, body)


def _list_sentences(facts: CellFacts) -> Markup:
    plain, strong = Markup("<li>{}</li>"), Markup("<li><b>{}</b></li>")
    items = [(strong if sentence == facts.alarm else plain).format(sentence) for sentence in facts.sentences]
    return Markup("<ul>{}</ul>").format(Markup("").join(items)) if items else Markup("")


def _number(value: float, form: str) -> str:
    shown = f"{value:{form}}"
    return shown if not shown.startswith("-") or float(shown) else shown[1:]  # no minus zero


def _mean(points: Points) -> float:
    values = [value for _, value in points if isfinite(value)]
    return sum(values) / len(values) if values else float("nan")
