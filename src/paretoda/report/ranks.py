"""Pictures of comparisons as inline SVG: average ranks with their critical difference, and differences by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from statistics import fmean

from markupsafe import Markup

from paretoda.report.significance import Ranking

_WIDTH, _SIDE, _AXIS, _STEP = 940, 255, 56, 21
_PANEL, _NAMES, _ROW = 400, 96, 20
_LETTERS = {"side": 30, "panel": 13}


def draw_ranks(ranking: Ranking) -> Markup:
    """Return Demšar's diagram: the best at the left, a bar under every group whose ranks do not differ."""
    count = len(ranking.ranks)
    groups = ranking.groups()
    levels = _levels(groups)
    first = _AXIS + 30 + 9 * (max(levels, default=-1) + 1)
    left = ceil(count / 2)
    height = first + _STEP * (left - 1) + 14
    parts = [_draw_axis(count, ranking.critical_difference)]
    ranks = list(ranking.ranks.values())
    for (start, end), level in zip(groups, levels, strict=True):
        y = _AXIS + 14 + 9 * level
        near, far = _rank_x(ranks[start], count) - 4, _rank_x(ranks[end], count) + 4
        parts.append(_draw_line(near, y, far, y, "group"))
    for place, (name, value) in enumerate(ranking.ranks.items()):
        here = place < left
        y = first + _STEP * (place if here else count - 1 - place)
        x, edge = _rank_x(value, count), _SIDE - 8 if here else _WIDTH - _SIDE + 8
        path = Markup('<path class="elbow" d="M{0} {1}V{2}H{3}"/><circle class="at" cx="{0}" cy="{1}" r="3.5"/>')
        parts.append(path.format(x, _AXIS, y, edge))
        parts.append(_draw_name(edge + (-6 if here else 6), y + 4, f"{name}", f"{value:.2f}", here))
    description = f"Average ranks: {', '.join(f'{name} {value:.2f}' for name, value in ranking.ranks.items())}"
    return _svg(_WIDTH, height, description, parts, "ranks")


def draw_differences(differences: Mapping[str, Mapping[str, Sequence[float]]]) -> list[tuple[str, Markup]]:
    """Return (name, picture) for each contender: a row per task, a dot per seed, a bar at the mean; one axis for all.

    Args:
        differences: Contender -> task -> fraction above the base for every seed.
    """
    everything = [100 * v for tasks in differences.values() for values in tasks.values() for v in values]
    if not everything:
        return []
    ticks = _ticks(min(0.0, *everything), max(0.0, *everything))
    return [(name, _draw_panel(name, tasks, ticks)) for name, tasks in differences.items()]


def _draw_panel(name: str, tasks: Mapping[str, Sequence[float]], ticks: Sequence[float]) -> Markup:
    def x(value: float) -> float:
        share = (value - ticks[0]) / (ticks[-1] - ticks[0])
        return round(_NAMES + 12 + share * (_PANEL - _NAMES - 30), 1)

    bottom = 6 + _ROW * len(tasks)
    parts = []
    for value in ticks:
        parts.append(_draw_line(x(value), 4, x(value), bottom, "zero" if value == 0 else "grid"))
        parts.append(_draw_text(x(value), bottom + 16, "middle", f"{value:+g}" if value else "0"))
    for row, (task, values) in enumerate(tasks.items()):
        y = 6 + _ROW * row + _ROW / 2
        mean = 100 * fmean(values)
        side = "up" if mean > 0 else "down"
        parts.append(_draw_short_text(_NAMES, y + 4, task, "end", "panel"))
        parts.append(_draw_line(x(0), y, x(mean), y, f"stem {side}"))
        dot = Markup('<circle class="seed {}" cx="{}" cy="{}" r="3.2"/>')
        parts += [dot.format(side, x(100 * value), y) for value in values]
        parts.append(_draw_line(x(mean), y - 6, x(mean), y + 6, f"mean {side}"))
    description = ", ".join(f"{task} {100 * fmean(values):+.1f}" for task, values in tasks.items())
    return _svg(_PANEL, bottom + 22, f"{name}, points by task: {description}", parts, "panel")


def _draw_axis(count: int, critical: float) -> Markup:
    parts = [_draw_line(_rank_x(1, count), _AXIS, _rank_x(count, count), _AXIS, "axis")]
    every = ceil(count / 15)
    for value in range(1, count + 1, every):
        parts.append(_draw_line(_rank_x(value, count), _AXIS - 6, _rank_x(value, count), _AXIS, "axis"))
        parts.append(_draw_text(_rank_x(value, count), _AXIS - 11, "middle", f"{value}"))
    reach = min(critical, count - 1.0)
    end = _rank_x(1 + reach, count)
    parts += [_draw_line(_rank_x(1, count), 14, end, 14, "cd")]
    parts += [_draw_line(x, 10, x, 18, "cd") for x in (_rank_x(1, count), *([end] if reach == critical else []))]
    wide = "" if reach == critical else ", wider than the axis"
    parts.append(_draw_text(end + 8, 18, "start", f"CD {critical:.2f}{wide}"))
    return Markup("").join(parts)


def _levels(groups: Sequence[tuple[int, int]]) -> list[int]:
    """Return the lowest line for each bar on which it touches no other."""
    ends: list[int] = []
    levels = []
    for start, end in groups:
        level = next((i for i, last in enumerate(ends) if last < start), len(ends))
        ends[level : level + 1] = [end]
        levels.append(level)
    return levels


def _ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return round numbers around the values, 0 among them."""
    rough = max(high - low, 0.4) / count
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.999 * rough)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    first, last = (first, last) if last > first else (-1, 1)
    return [round(place * step, 9) + 0.0 for place in range(first, last + 1)]


def _rank_x(rank: float, count: int) -> float:
    return round(_SIDE + 12 + (rank - 1) / max(1, count - 1) * (_WIDTH - 2 * _SIDE - 24), 1)


def _draw_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)


def _draw_text(x: float, y: float, anchor: str, text: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _draw_short_text(x: float, y: float, text: str, anchor: str, place: str) -> Markup:
    """Return the text, cut where it would leave its place, with the full text in a tooltip."""
    most = _LETTERS[place]
    cut = text if len(text) <= most else text[: most - 1] + "…"
    form = Markup('<text class="label" x="{}" y="{}" text-anchor="{}">{}<title>{}</title></text>')
    return form.format(x, y, anchor, cut, text)


def _draw_name(x: float, y: float, name: str, value: str, left: bool) -> Markup:
    rank = _draw_text(x + (14 if left else -14), y - 7, "start" if left else "end", value)
    return _draw_short_text(x, y, name, "end" if left else "start", "side") + rank


def _svg(width: float, height: float, description: str, parts: Sequence[Markup], kind: str) -> Markup:
    form = Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return form.format(kind, width, height, description, Markup("").join(parts))
