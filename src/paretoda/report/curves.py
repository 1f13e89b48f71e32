"""Curves as small inline SVG, coloured by the page's style so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, isfinite, log10
from typing import TypeAlias

from markupsafe import Markup, escape

Points: TypeAlias = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 10, 26
_MOST = 240
COLOURS = 8
"""The style sheet has so many colours; further curves begin again."""


def chart(curves: Mapping[str, Points], *, label: str, mark: float | None = None, dots: bool = False) -> Markup:
    """An SVG with one line for each curve, and its legend.

    Args:
        curves: name -> (step, value) pairs; those that are not finite leave a gap.
        label: what the picture shows, for those who cannot see it.
        mark: a step that gets a vertical line.
        dots: mark the points themselves, where there are few.
    """
    thin = {name: thinned(points) for name, points in curves.items()}
    finite = [(x, y) for points in thin.values() for x, y in points if isfinite(y)]
    if not finite:
        return Markup("<p>Nothing was recorded.</p>")
    xs, ys = ticks([x for x, _ in finite], whole=True), ticks([y for _, y in finite])
    frame = _Frame(min(x for x, _ in finite), max(x for x, _ in finite), ys[0], ys[-1])
    parts = [_axes(frame, xs, ys)]
    if mark is not None:
        parts.append(
            Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
                frame.x(mark), _TOP, _HEIGHT - _BOTTOM
            )
        )
    parts += [_line(frame, points, place, dots) for place, points in enumerate(thin.values())]
    picture = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, label, Markup("").join(parts)
    )
    return picture + legend(list(thin))


def legend(names: Sequence[str]) -> Markup:
    """The names beside their colours."""
    item = Markup('<li><i class="k{}"></i>{}</li>')
    return Markup('<ul class="legend">{}</ul>').format(
        Markup("").join(item.format(place % COLOURS, name) for place, name in enumerate(names))
    )


def thinned(points: Points, most: int = _MOST) -> list[tuple[float, float]]:
    """The points themselves where they are few, otherwise the means of equal stretches."""
    if len(points) <= most:
        return list(points)
    size = ceil(len(points) / most)
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [(_mean([x for x, _ in part]), _mean([y for _, y in part])) for part in stretches]


def ticks(values: Sequence[float], *, whole: bool = False, count: int = 5) -> list[float]:
    """Round numbers that span the values, about `count` of them."""
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        pad = abs(high) * 0.5 or 1.0
        low, high = low - pad, high + pad
    rough = (high - low) / count
    power = 10.0 ** floor(log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    step = max(1.0, step) if whole else step
    return [place * step for place in range(floor(low / step), ceil(high / step) + 1)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class _Frame:
    """Where a value stands in the picture."""

    def __init__(self, left: float, right: float, low: float, high: float) -> None:
        self.left, self.right, self.low, self.high = left, right, low, high

    def x(self, value: float) -> float:
        """Pixels from the left."""
        share = (value - self.left) / ((self.right - self.left) or 1)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def _axes(frame: _Frame, xs: Sequence[float], ys: Sequence[float]) -> Markup:
    across = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    parts = []
    for value in ys:
        y = frame.y(value)
        parts += [across.format(_LEFT, _WIDTH - _RIGHT, y, y), text.format(_LEFT - 6, y + 4, "end", f"{value:.4g}")]
    for value in xs:
        if frame.left <= value <= frame.right:
            anchor = "end" if frame.x(value) > _WIDTH - 30 else "middle"
            parts.append(text.format(frame.x(value), _HEIGHT - 8, anchor, f"{value:.6g}"))
    return Markup("").join(parts)


def _line(frame: _Frame, points: Points, place: int, dots: bool) -> Markup:
    """One curve; a gap where a value is not finite."""
    runs: list[list[str]] = [[]]
    circles = []
    for x, y in points:
        if isfinite(y):
            runs[-1].append(f"{frame.x(x)},{frame.y(y)}")
            circles.append(
                Markup('<circle class="c{}" cx="{}" cy="{}" r="3"/>').format(place % COLOURS, frame.x(x), frame.y(y))
            )
        elif runs[-1]:
            runs.append([])
    line = Markup('<polyline class="c{}" points="{}"/>')
    drawn = Markup("").join(line.format(place % COLOURS, escape(" ".join(run))) for run in runs if run)
    alone = any(len(run) == 1 for run in runs)
    return drawn + Markup("").join(circles if dots or alone else [])
