"""Where a value stands in a picture, and the round numbers beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

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


def limits(values: Sequence[float]) -> tuple[float, float]:
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


def edges(low: float, high: float) -> tuple[float, float, list[float]]:
    """Bottom, top and the round numbers between them: the next round number, unless it would leave much empty."""
    marks = ticks([low, high])
    step, pad = marks[1] - marks[0], 0.04 * (high - low)
    bottom = low - pad if pad and low - marks[0] > 0.5 * step else min(marks[0], low)
    top = high + pad if pad and marks[-1] - high > 0.5 * step else max(marks[-1], high)
    return bottom, top, [mark for mark in marks if bottom <= mark <= top]


def axes(frame: Frame, xs: Sequence[float], ys: Sequence[float]) -> Markup:
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
