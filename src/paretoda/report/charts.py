"""Curves, axes and the strip of moves as small inline SVG, coloured by the page's style."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, isfinite, log10
from statistics import median
from typing import TypeAlias

from markupsafe import Markup, escape

WIDTH, HEIGHT = 520, 232
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 26
_FAR = 2.0
"""A value so many spans of the middle 96 % beyond them would flatten all others: it is drawn at the edge."""


@dataclass(frozen=True)
class Frame:
    """The values at the picture's four sides.

    Args:
        left: smallest step.
        right: largest step.
        low: at the bottom.
        high: at the top.
    """

    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Pixels from the left."""
        share = (value - self.left) / ((self.right - self.left) or 1)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Pixels from the top; what is beyond the frame stands at its edge."""
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / ((self.high - self.low) or 1)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def value_limits(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and largest value that the picture should hold; a few far outliers are left out of it."""
    ranked = sorted(values)
    low, high = ranked[floor(0.02 * (len(ranked) - 1))], ranked[ceil(0.98 * (len(ranked) - 1))]
    reach = _FAR * (high - low)
    if not reach:
        return ranked[0], ranked[-1]
    return (
        low if ranked[0] < low - reach else ranked[0],
        high if ranked[-1] > high + reach else ranked[-1],
    )


def round_ticks(values: Sequence[float], *, whole: bool = False, count: int = 5) -> list[float]:
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


def frame_edges(low: float, high: float) -> tuple[float, float, list[float]]:
    """Bottom, top and the round numbers between them: the next round number, unless it would leave much empty."""
    marks = round_ticks([low, high])
    step, pad = marks[1] - marks[0], 0.04 * (high - low)
    bottom = low - pad if pad and low - marks[0] > 0.5 * step else min(marks[0], low)
    top = high + pad if pad and marks[-1] - high > 0.5 * step else max(marks[-1], high)
    return bottom, top, [mark for mark in marks if bottom <= mark <= top]


def draw_axes(frame: Frame, xs: Sequence[float], ys: Sequence[float]) -> Markup:
    """Grid lines with their numbers; zero's is stronger."""
    across = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    parts = []
    for value in ys:
        y, kind = frame.y(value), "zero" if value == 0 else "grid"
        parts += [across.format(kind, LEFT, WIDTH - RIGHT, y, y), text.format(LEFT - 6, y + 4, "end", f"{value:.4g}")]
    for value in xs:
        if frame.left <= value <= frame.right:
            anchor = "end" if frame.x(value) > WIDTH - 30 else "middle"
            parts.append(text.format(frame.x(value), HEIGHT - 8, anchor, f"{value:.6g}"))
    return Markup("").join(parts)


Points: TypeAlias = Sequence[tuple[float, float]]

_MOST = 240
_COLUMNS = 60  # places of the picture that tell their values under the pointer
_NOISY = 30  # from so many points on, a running median is drawn over them
COLOURS = 12
"""The style sheet has so many colours; further curves begin again."""


def draw_chart(curves: Mapping[str, Points], *, label: str, mark: float | None = None, dots: bool = False) -> Markup:
    """An SVG with one line for each curve, and its legend.

    Args:
        curves: name -> (step, value) pairs; those that are not finite leave a gap.
        label: what the picture shows, for those who cannot see it.
        mark: a step that gets a vertical line.
        dots: mark the points themselves, where there are few.
    """
    thin = {name: thin_points(points) for name, points in curves.items()}
    finite = [(x, y) for points in thin.values() for x, y in points if isfinite(y)]
    if not finite:
        return Markup("<p>Nothing was recorded.</p>")
    low, high = value_limits([y for _, y in finite])
    xs, (bottom, top, ys) = round_ticks([x for x, _ in finite], whole=True), frame_edges(low, high)
    frame = Frame(min(x for x, _ in finite), max(x for x, _ in finite), bottom, top)
    parts = [draw_axes(frame, xs, ys)]
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
    return picture + draw_legend(list(thin)) + _beyond(frame, [y for _, y in finite])


def draw_legend(names: Sequence[str]) -> Markup:
    """The names beside their colours; a click on a colour hides what has it, without any script."""
    item = Markup('<li><label><input type="checkbox" checked class="k{}" autocomplete="off">{}</label></li>')
    return Markup('<ul class="legend">{}</ul>').format(
        Markup("").join(item.format(place % COLOURS, name) for place, name in enumerate(names))
    )


def thin_points(points: Points, most: int = _MOST) -> list[tuple[float, float]]:
    """The points themselves where they are few, otherwise the means of equal stretches."""
    if len(points) <= most:
        return list(points)
    size = ceil(len(points) / most)
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [(_mean([x for x, _ in part]), _mean([y for _, y in part])) for part in stretches]


def smooth_points(points: Points) -> list[tuple[float, float]]:
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
    return faint + _line(frame, smooth_points(points), f"c{place % COLOURS}", False)


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


_WIDTH, _HEIGHT = 520, 44


def draw_strip(moves: Sequence[str], order: Sequence[str]) -> Markup:
    """One stretch for each run of equal moves.

    Args:
        moves: of every step.
        order: all moves; the place decides the colour.
    """
    parts, start = [], 0
    block = Markup('<rect class="f{}" x="{}" y="0" width="{}" height="26"><title>{}</title></rect>')
    for move, group in groupby(moves):
        count = len(list(group))
        left, width = _WIDTH * start / len(moves), _WIDTH * count / len(moves)
        where = f"{move}: step {start + 1}" + (f" to {start + count}" if count > 1 else "")
        parts.append(block.format(order.index(move) % COLOURS, round(left, 2), round(width, 2), where))
        start += count
    ends = Markup('<text x="0" y="41">1</text><text x="{}" y="41" text-anchor="end">{}</text>')
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="Moves over steps">{}{}</svg>').format(
        _WIDTH, _HEIGHT, Markup("").join(parts), ends.format(_WIDTH, len(moves))
    )
