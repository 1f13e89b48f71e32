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
"""Number of spans of the middle 96 % beyond which a value is drawn at the edge, so that it does not flatten the others.
"""
Points: TypeAlias = Sequence[tuple[float, float]]
_MOST = 240
_COLUMNS = 60  # columns of the picture that show their values under the pointer
_NOISY = 30  # with at least so many points, a running median is drawn over them
COLOURS = 12
"""Number of colours in the style sheet; further curves begin again."""
_WIDTH, _HEIGHT = 520, 44


@dataclass(frozen=True)
class Frame:
    """The values at the four sides of the picture.

    Args:
        left: Smallest step.
        right: Largest step.
        low: Value at the bottom.
        high: Value at the top.
    """

    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Return pixels from the left."""
        share = (value - self.left) / ((self.right - self.left) or 1)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Return pixels from the top; what is beyond the frame is placed at its edge."""
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / ((self.high - self.low) or 1)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def value_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the smallest and largest value that the picture should show, without a few far outliers."""
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
    """Return about `count` round numbers that span the values.

    >>> round_ticks([0, 9])
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
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
    """Return bottom, top and the round numbers between them.

    An edge is the next round number, unless that would leave much empty.
    """
    marks = round_ticks([low, high])
    step, pad = marks[1] - marks[0], 0.04 * (high - low)
    bottom = low - pad if pad and low - marks[0] > 0.5 * step else min(marks[0], low)
    top = high + pad if pad and marks[-1] - high > 0.5 * step else max(marks[-1], high)
    return bottom, top, [mark for mark in marks if bottom <= mark <= top]


def draw_axes(frame: Frame, xs: Sequence[float], ys: Sequence[float]) -> Markup:
    """Return grid lines with their numbers; the line at zero is stronger."""
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


def draw_chart(
    curves: Mapping[str, Points], *, label: str, mark: float | None = None, dots: bool = False, axis: str = "step"
) -> Markup:
    """Return an SVG with one line for each curve, and its legend.

    Args:
        curves: Name -> (step, value) pairs; those that are not finite leave a gap.
        label: What the picture shows, for readers who cannot see it.
        mark: Step that gets a vertical line.
        dots: Whether the points themselves are marked, where there are few.
        axis: What the horizontal axis has; of other things than steps, the ticks need not be whole.
    """
    thin = {name: thin_points(points) for name, points in curves.items()}
    finite = [(x, y) for points in thin.values() for x, y in points if isfinite(y)]
    if not finite:
        return Markup("<p>Nothing was recorded.</p>")
    low, high = value_limits([y for _, y in finite])
    xs, (bottom, top, ys) = round_ticks([x for x, _ in finite], whole=axis == "step"), frame_edges(low, high)
    frame = Frame(min(x for x, _ in finite), max(x for x, _ in finite), bottom, top)
    parts = [draw_axes(frame, xs, ys)]
    if mark is not None:
        parts.append(
            Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
                frame.x(mark), TOP, HEIGHT - BOTTOM
            )
        )
    parts += [_draw_curve(frame, points, place, dots) for place, points in enumerate(thin.values())]
    parts.append(_draw_readings(frame, thin, axis))
    picture = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, label, Markup("").join(parts)
    )
    return picture + draw_legend(list(thin)) + _note_outliers(frame, [y for _, y in finite])


def draw_legend(names: Sequence[str]) -> Markup:
    """Return the names beside their colours; a click on a colour hides its curve, without any script."""
    item = Markup('<li><label><input type="checkbox" checked class="k{}" autocomplete="off">{}</label></li>')
    return Markup('<ul class="legend">{}</ul>').format(
        Markup("").join(item.format(place % COLOURS, name) for place, name in enumerate(names))
    )


def thin_points(points: Points, most: int = _MOST) -> list[tuple[float, float]]:
    """Return the points themselves where they are few, otherwise the means of equal stretches."""
    if len(points) <= most:
        return list(points)
    size = ceil(len(points) / most)
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [(_mean([x for x, _ in part]), _mean([y for _, y in part])) for part in stretches]


def smooth_points(points: Points) -> list[tuple[float, float]]:
    """Return the running median over about a twelfth of the points; a point that is not finite leaves a gap."""
    half = max(1, len(points) // 24)
    values = [y for _, y in points]
    middle = []
    for place, (x, y) in enumerate(points):
        near = [value for value in values[max(0, place - half) : place + half + 1] if isfinite(value)]
        middle.append((x, median(near) if isfinite(y) else y))
    return middle


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _draw_curve(frame: Frame, points: Points, place: int, dots: bool) -> Markup:
    """Return one curve; many points are drawn faintly, with their running median above."""
    if dots or len(points) < _NOISY:
        return _draw_line(frame, points, f"c{place % COLOURS}", dots)
    faint = _draw_line(frame, points, f"c{place % COLOURS} raw", False)
    return faint + _draw_line(frame, smooth_points(points), f"c{place % COLOURS}", False)


def _draw_line(frame: Frame, points: Points, kind: str, dots: bool) -> Markup:
    """Return a line with a gap where a value is not finite."""
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


def _draw_readings(frame: Frame, curves: Mapping[str, Points], axis: str) -> Markup:
    """Return invisible columns that show the values below the pointer."""
    steps = sorted({x for points in curves.values() for x, _ in points})
    steps = steps[:: ceil(len(steps) / _COLUMNS)]
    middles = [(first + second) / 2 for first, second in pairwise(steps)]
    sides = [float(LEFT), *map(frame.x, middles), float(WIDTH - RIGHT)]
    column = Markup(
        '<g class="at"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}"/><path d="M{} {}V{}"/></g>'
    )
    parts = []
    for step, left, right in zip(steps, sides, sides[1:], strict=False):
        texts = "\n".join([f"{axis} {step:.6g}", *_format_values(curves, step)])
        size = (left, TOP, round(right - left, 1), HEIGHT - TOP - BOTTOM)
        parts.append(column.format(texts, *size, frame.x(step), TOP, HEIGHT - BOTTOM))
    return Markup("").join(parts)


def _format_values(curves: Mapping[str, Points], step: float) -> list[str]:
    texts = []
    for name, points in curves.items():
        place = bisect_left([x for x, _ in points], step)
        if points:
            texts.append(f"{name}: {points[min(place, len(points) - 1)][1]:.4g}")
    return texts


def _note_outliers(frame: Frame, values: Sequence[float]) -> Markup:
    out = [value for value in values if not frame.low <= value <= frame.high]
    if not out:
        return Markup("")
    far = max(out, key=abs)
    text = f"{len(out)} of {len(values)} values lie beyond the frame and stand at its edge; the farthest is {far:.3g}."
    return Markup('<p class="soft note">{}</p>').format(text)


def draw_strip(moves: Sequence[str], order: Sequence[str]) -> Markup:
    """Return one stretch for each run of equal moves.

    Args:
        moves: Move of every step.
        order: All moves; the position decides the colour.
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
