"""Figures of the studies: SVG files whose bytes depend on what they show alone."""

from __future__ import annotations

import io
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING

from paretoda.training.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#e6860b", "#17a2a8", "#8c564b", "#d13fa5", "#111111")
"""Far apart on white, also in print."""
_FEW_POWERS = 2.5
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")


def panels(rows: int, columns: int, *, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row; no window is opened.

    Args:
        rows: of panels.
        columns: of panels.
        width: of a panel, in inches.
        height: of a panel, in inches.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]
    for one in axes:
        one.grid(True, color="#e3e6eb", linewidth=0.8)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def round_logs(axes: Axes, axis: str) -> None:
    """A logarithmic axis ("x" or "y") with numbers at 1, 2, 5, 10, ..., or at powers of ten where it spans many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    getattr(axes, f"set_{axis}scale")("log")
    own = axes.xaxis if axis == "x" else axes.yaxis
    low, high = own.get_data_interval()
    few = low > 0 and log10(high / low) <= _FEW_POWERS
    own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    own.set_minor_locator(NullLocator())
    own.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))


def save(figure: Figure, path: Path) -> str:
    """Write the SVG whole and return its name."""
    from matplotlib import rc_context  # noqa: PLC0415

    text = io.StringIO()
    with rc_context({"svg.hashsalt": "paretoda"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    write_text(path, text.getvalue())
    return path.name
