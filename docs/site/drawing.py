"""A few shapes as SVG text: figures that are readable on light and dark pages, and print the same bytes every time."""

from __future__ import annotations

import math
from html import escape

STYLE = """
  .paper { fill: #ffffff; } .box { fill: #f3f4fb; stroke: #3f51b5; stroke-width: 1.5; }
  .end { fill: #e6f4ea; stroke: #1e7d3c; stroke-width: 1.5; } .no { fill: #fdeceb; stroke: #b3261e; stroke-width: 1.5; }
  .area { fill: #3f51b5; fill-opacity: .10; } .edge { stroke: #3f51b5; stroke-dasharray: 5 4; stroke-width: 1.2; }
  .line { stroke: #555; stroke-width: 1.5; fill: none; } .tip { fill: #555; }
  text { font: 14px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1c1c1e; }
  .small { font-size: 12px; fill: #555; } .strong { font-weight: 600; } .mid { text-anchor: middle; }
  .a { stroke: #1f77b4; fill: #1f77b4; } .b { stroke: #d95f02; fill: #d95f02; } .c { stroke: #1e7d3c; fill: #1e7d3c; }
  .g { stroke: #8e44ad; fill: #8e44ad; } .w { stroke: #888; fill: #888; } .d { stroke: #1c1c1e; fill: #1c1c1e; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #1e2129; } .box { fill: #2a2f45; stroke: #9fa8da; } .end { fill: #1f3527; stroke: #7bc894; }
    .no { fill: #3c2422; stroke: #f2a59f; } .area { fill: #9fa8da; } .edge { stroke: #9fa8da; }
    .line { stroke: #bbb; } .tip { fill: #bbb; } text { fill: #e8e8ea; } .small { fill: #b5b5ba; }
    .a { stroke: #6baed6; fill: #6baed6; } .b { stroke: #fdae6b; fill: #fdae6b; } .c { stroke: #7bc894; fill: #7bc894; }
    .g { stroke: #c9a0dc; fill: #c9a0dc; } .d { stroke: #ffffff; fill: #ffffff; }
  }
"""


def drawing(width: int, height: int, title: str, shapes: list[str]) -> str:
    """A whole SVG file.

    Args:
        width: in user units.
        height: the same.
        title: what it shows, for those who cannot see it.
        shapes: in the order in which they are painted.
    """
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    paper = f'<rect class="paper" width="{width}" height="{height}" rx="8"/>'
    inside = "\n".join([f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", paper, *shapes])
    return f"{head}\n{inside}\n</svg>\n"


def words(x: float, y: float, text: str, kind: str = "") -> str:
    """One line of text; its baseline begins (or, with `mid`, has its middle) at (x, y)."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'


def box(x: float, y: float, size: tuple[float, float], lines: list[str], kind: str = "box") -> str:
    """A box whose upper left corner is at (x, y), with lines of text in its middle; the first is strong."""
    width, height = size
    top = y + height / 2 - 9 * len(lines) + 13
    texts = [
        words(x + width / 2, top + 18 * number, line, "mid strong" if number == 0 else "mid small")
        for number, line in enumerate(lines)
    ]
    return "\n".join(
        [f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" class="{kind}"/>', *texts]
    )


def arrow(start: tuple[float, float], end: tuple[float, float], kind: str = "", width: float = 1.5) -> str:
    """A straight arrow; without a kind in the colour of connecting lines."""
    (x, y), (u, v) = start, end
    angle = math.atan2(v - y, u - x)
    size = 5 + 2 * width
    back = (u - size * math.cos(angle), v - size * math.sin(angle))
    wings = [(u - size * math.cos(angle + s), v - size * math.sin(angle + s)) for s in (0.4, -0.4)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in [(u, v), *wings])
    line = (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{back[0]:.1f}" y2="{back[1]:.1f}" '
        f'class="{kind or "line"}" style="stroke-width:{width}"/>'
    )
    return f'{line}\n<polygon points="{points}" class="{kind or "tip"}" style="stroke:none"/>'


def elbow(points: list[tuple[float, float]]) -> str:
    """A line through the points; its last piece is an arrow."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[:-1])
    return f'<polyline points="{path}" class="line"/>\n{arrow(points[-2], points[-1])}'
