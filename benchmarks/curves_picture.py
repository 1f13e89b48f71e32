"""The curves of `curves.py` as one picture: time above, memory below, an axis a column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

_COLOURS = {"sum": "#777777", "exact": "#1f5fa8", "last": "#c8641e"}
_LABELS = {"d": "shared parameters d", "m": "objectives m", "K": "classes K", "batch": "samples a domain"}
_TICKS = (0.5, 1, 2, 5, 10)


def draw(table: Sequence[dict[str, Any]], file: Path) -> None:
    """Write the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update(
        {
            "svg.hashsalt": "paretoda",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    import matplotlib.pyplot as plt

    axes = list(dict.fromkeys(row["axis"] for row in table))
    figure, grid = plt.subplots(2, len(axes), figsize=(2.9 * len(axes), 4.8), squeeze=False, layout="constrained")
    for column, axis in enumerate(axes):
        for line, field in enumerate(("time", "floats_per_d")):
            here = grid[line][column]
            for variant, colour in _COLOURS.items():
                found = [
                    (row["value"], row[field]) for row in table if row["axis"] == axis and row["variant"] == variant
                ]
                here.plot(*zip(*found, strict=True), "o-", color=colour, label=variant, markersize=3.5)
            if axis != "m":
                here.set_xscale("log")
            if axis != "m" and field == "time":
                here.set_yscale("log")
                here.set_yticks(_TICKS, map(str, _TICKS))
            values = sorted({row["value"] for row in table if row["axis"] == axis})
            here.set_xticks(values, [_short(value) for value in values])
            here.minorticks_off()
            here.grid(alpha=0.3)
            if line == 1:
                here.set_xlabel(_LABELS[axis])
                here.set_ylim(bottom=0)
    grid[0][0].set_ylabel("CPU time of a step\n(middle point's sum = 1)")
    grid[1][0].set_ylabel("memory of a step,\nfloats per parameter")
    grid[0][0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def _short(value: int) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:.1f}M"
    return f"{value / 1e3:.0f}k" if value >= 1000 else str(value)
