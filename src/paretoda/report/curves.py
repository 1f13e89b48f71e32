"""Curves as small inline SVG, coloured by the page's style so that they follow light and dark."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, isfinite
from statistics import median
from typing import TypeAlias

from markupsafe import Markup, escape

from paretoda.report.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame, axes, edges, limits, ticks

__all__ = ["COLOURS", "Points", "chart", "legend", "smoothed", "thinned", "ticks"]

Points: TypeAlias = Sequence[tuple[float, float]]

_MOST = 240
_COLUMNS = 60  # places of the picture that tell their values under the pointer
_NOISY = 30  # from so many points on, a running median is drawn over them
COLOURS = 12
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
    low, high = limits([y for _, y in finite])
    xs, (bottom, top, ys) = ticks([x for x, _ in finite], whole=True), edges(low, high)
    frame = Frame(min(x for x, _ in finite), max(x for x, _ in finite), bottom, top)
    parts = [axes(frame, xs, ys)]
    if mark is not None:
        parts.append(
            Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
                frame.x(mark), TOP, HEIGHT - BOTTOM
            )
        )
    parts += [_curve(frame, points, place, dots) for place, points in enumerate(thin.values())]
    parts.append(_readings(frame, thin))
    picture = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, label, Markup("").join(parts)
    )
    return picture + legend(list(thin)) + _beyond(frame, [y for _, y in finite])


def legend(names: Sequence[str]) -> Markup:
    """The names beside their colours; a click on a colour hides what has it, without any script."""
    item = Markup('<li><label><input type="checkbox" checked class="k{}" autocomplete="off">{}</label></li>')
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


def smoothed(points: Points) -> list[tuple[float, float]]:
    """The running median over about a twelfth of the points; a point that is not finite keeps its gap."""
    half = max(1, len(points) // 24)
    values = [y for _, y in points]
    middle = []
    for place, (x, y) in enumerate(points):
        near = [value for value in values[max(0, place - half) : place + half + 1] if isfinite(value)]
        middle.append((x, median(near) if isfinite(y) else y))
    return middle


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _curve(frame: Frame, points: Points, place: int, dots: bool) -> Markup:
    """One curve; many points are drawn faintly, with their running median above."""
    if dots or len(points) < _NOISY:
        return _line(frame, points, f"c{place % COLOURS}", dots)
    faint = _line(frame, points, f"c{place % COLOURS} raw", False)
    return faint + _line(frame, smoothed(points), f"c{place % COLOURS}", False)


def _line(frame: Frame, points: Points, kind: str, dots: bool) -> Markup:
    """A line with a gap where a value is not finite."""
    runs: list[list[str]] = [[]]
    circles = []
    for x, y in points:
        if isfinite(y):
            runs[-1].append(f"{frame.x(x)},{frame.y(y)}")
            circles.append(Markup('<circle class="{}" cx="{}" cy="{}" r="3"/>').format(kind, frame.x(x), frame.y(y)))
        elif runs[-1]:
            runs.append([])
    line = Markup('<polyline class="{}" points="{}"/>')
    drawn = Markup("").join(line.format(kind, escape(" ".join(run))) for run in runs if run)
    alone = any(len(run) == 1 for run in runs)
    return drawn + Markup("").join(circles if dots or alone else [])


def _readings(frame: Frame, curves: Mapping[str, Points]) -> Markup:
    """Invisible columns that tell the values below the pointer."""
    steps = sorted({x for points in curves.values() for x, _ in points})
    steps = steps[:: ceil(len(steps) / _COLUMNS)]
    middles = [(first + second) / 2 for first, second in pairwise(steps)]
    sides = [float(LEFT), *map(frame.x, middles), float(WIDTH - RIGHT)]
    column = Markup(
        '<g class="at"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}"/><path d="M{} {}V{}"/></g>'
    )
    parts = []
    for step, left, right in zip(steps, sides, sides[1:], strict=False):
        told = "\n".join([f"step {step:.6g}", *_told(curves, step)])
        size = (left, TOP, round(right - left, 1), HEIGHT - TOP - BOTTOM)
        parts.append(column.format(told, *size, frame.x(step), TOP, HEIGHT - BOTTOM))
    return Markup("").join(parts)


def _told(curves: Mapping[str, Points], step: float) -> list[str]:
    told = []
    for name, points in curves.items():
        place = bisect_left([x for x, _ in points], step)
        if points:
            told.append(f"{name}: {points[min(place, len(points) - 1)][1]:.4g}")
    return told


def _beyond(frame: Frame, values: Sequence[float]) -> Markup:
    out = [value for value in values if not frame.low <= value <= frame.high]
    if not out:
        return Markup("")
    far = max(out, key=abs)
    text = f"{len(out)} of {len(values)} values lie beyond the frame and stand at its edge; the farthest is {far:.3g}."
    return Markup('<p class="soft note">{}</p>').format(text)
