"""Pictures of predicted values: their distribution in both domains, and predictions against true values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from paretoda.report.charts import HEIGHT, WIDTH, Frame, draw_axes, draw_chart, frame_edges, round_ticks, value_limits
from paretoda.report.facts import Figure

_BINS = 30
_MOST = 1000
"""Largest number of points of a scatter."""


def draw_distributions(values: Mapping[str, NDArray[np.float64]]) -> Figure:
    """Return the share of the samples in equal bins, one curve for each set of values.

    Args:
        values: Name -> values, shape (n,), all finite.
    """
    every = np.concatenate(list(values.values()))
    edges = np.linspace(every.min(), every.max() if np.ptp(every) else every.min() + 1, _BINS + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    curves = {
        name: list(zip(middles, (np.histogram(own, edges)[0] / len(own)).tolist(), strict=True))
        for name, own in values.items()
    }
    about = (
        "Share of the samples in each of 30 bins. The target's predictions need not look like the source's values, but "
        "values where the source has none are guesses."
    )
    return Figure("Distribution of values", about, draw_chart(curves, label="Shares of values", axis="value"))


def draw_against_truth(
    predicted: NDArray[np.float64], values: NDArray[np.float64], where: str, error: float, *, oracle: bool = False
) -> Figure:
    """Return the predictions over the true values, with the line of perfect predictions.

    Args:
        predicted: Predicted values, shape (n,), all finite.
        values: True values, shape (n,).
        where: Whose values they are.
        error: Mean absolute error of all of them.
        oracle: Whether they are true values of the target.
    """
    some = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST)).astype(np.int64))
    x, y = values[some], predicted[some]
    low, high = value_limits([*x.tolist(), *y.tolist()])
    bottom, top, ticks = frame_edges(low, high)
    frame = Frame(bottom, top, bottom, top)
    dots = "".join(f"M{frame.x(one):g} {frame.y(other):g}h0" for one, other in zip(x.tolist(), y.tolist(), strict=True))
    line = f"{frame.x(bottom)},{frame.y(bottom)} {frame.x(top)},{frame.y(top)}"
    picture = Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}<polyline class="c1" points="{}"/>'
        '<path class="dot c0" d="{}"/></svg>'
    ).format(WIDTH, HEIGHT, f"Predictions, {where}", draw_axes(frame, round_ticks([bottom, top]), ticks), line, dots)
    used = (
        "Oracle: values of the target were used for this picture, never for training or choosing."
        if oracle
        else "Samples that were never trained on; no value of the target is in here."
    )
    about = f"{used} Across: the true value; up: the prediction. Mean absolute error {error:.4g}."
    return Figure(f"Predictions against true values, {where}", about, picture)
