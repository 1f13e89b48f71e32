"""Paths in the three planes of the losses, and the accuracy along them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paretoda.studies.figures import COLOURS, panels, round_logs, save
from paretoda.studies.path_facts import LOSSES, losses_of

_AXES = {"source": "source loss L_S", "alignment": "alignment L_D", "target": "target loss L_T"}
_PLANES = (("source", "alignment"), ("source", "target"), ("alignment", "target"))


def picture(directory: Path, rows: Sequence[Mapping[str, Any]], seed: int) -> str:
    """Draw the paths of one seed; the name of the file.

    Args:
        directory: of the study.
        rows: of all paths and seeds.
        seed: which.
    """
    figure, axes = panels(2, 2, width=5.6, height=4.2)
    own = [row for row in rows if row["seed"] == seed]
    for place, row in enumerate(own):
        colour, oracle = COLOURS[place % len(COLOURS)], "oracle" in row["name"]
        look: dict[str, Any] = {"color": colour, "linestyle": "--" if oracle else "-", "linewidth": 1.7, "alpha": 0.9}
        losses = losses_of(row)
        for one, plane in zip(axes, _PLANES, strict=False):
            x, y = (losses[:, LOSSES.index(name)] for name in plane)
            one.plot(x, y, marker=".", markersize=5, **look)
            one.plot(x[-1:], y[-1:], marker="o", markersize=10, color=colour, markeredgecolor="black", linestyle="")
        steps = [point["step"] for point in row["points"]]
        axes[3].plot(steps, [100 * point["oracle_accuracy"] for point in row["points"]], label=row["name"], **look)
    for one, plane in zip(axes, _PLANES, strict=False):
        start = [losses_of(own[0])[0, LOSSES.index(name)] for name in plane]
        one.plot(*[[value] for value in start], marker="*", markersize=16, color="black", zorder=5)
        one.set(xlabel=_AXES[plane[0]], ylabel=_AXES[plane[1]])
        for axis, name in zip(("x", "y"), plane, strict=True):
            if name != "alignment":  # falls over orders of magnitude; alignment may be below 0
                round_logs(one, axis)
    axes[3].set(xlabel="step", ylabel="target accuracy (oracle), %")
    figure.legend(*axes[3].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return save(figure, directory / f"paths-seed-{seed}.svg")
