"""The map of features: two panels of the same points, by domain and by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from paretoda.report.charts import COLOURS, draw_legend

_SIDE, _EDGE = 400, 14
_OTHERS = "all others"


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Samples of both domains in the plane.

    Args:
        points: Coordinates, shape (n, 2).
        target: True for samples of the target, shape (n,).
        labels: The source's labels and the target's predictions, shape (n,).
        classes: Names of the classes.
        explained: Share of the variance that the plane shows.
    """

    points: NDArray[np.float64]
    target: NDArray[np.bool_]
    labels: NDArray[np.int64]
    classes: Sequence[str]
    explained: float


def make_feature_map(
    source: tuple[NDArray[np.float32], NDArray[np.int64]],
    target: tuple[NDArray[np.float32], NDArray[np.int64]],
    classes: Sequence[str],
) -> FeatureMap | None:
    """Project both domains on the two principal axes of their features; None where these are not finite.

    Args:
        source: Features (n, d) and labels (n,).
        target: Features (m, d) and predicted classes (m,).
        classes: Names of the classes.
    """
    from scipy.sparse.linalg import svds  # noqa: PLC0415  (slow to import)

    rows = np.concatenate([source[0], target[0]]).astype(np.float64)
    if min(rows.shape) < 2 or not np.isfinite(rows).all() or not rows.std(axis=0).any():
        return None
    centred = rows - rows.mean(axis=0)
    if min(rows.shape) == 2:
        sizes, axes = np.linalg.svd(centred, full_matrices=False)[1:]
    else:
        sizes, axes = svds(centred, k=2, v0=np.ones(min(rows.shape)))[1:]
        sizes, axes = sizes[::-1], axes[::-1]
    axes = axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]
    points = centred @ axes.T
    is_target = np.arange(len(rows)) >= len(source[0])
    labels = np.concatenate([source[1], target[1]]).astype(np.int64)
    return FeatureMap(points, is_target, labels, classes, float(np.square(sizes).sum() / np.square(centred).sum()))


def draw_panels(plane: FeatureMap) -> list[tuple[str, Markup]]:
    """Return heading and picture with legend: by domain, by class."""
    places = _to_pixels(plane.points)
    domains = plane.target.astype(np.int64)
    groups, names = _group_classes(plane)
    return [
        ("by domain", _draw_panel(places, domains, plane.target, "by domain") + draw_legend(["source ●", "target ✕"])),
        ("by class", _draw_panel(places, groups, plane.target, "by class") + draw_legend(names)),
    ]


def _group_classes(plane: FeatureMap) -> tuple[NDArray[np.int64], list[str]]:
    """Return each sample's colour and the colours' names; the rarer classes share the palette's last colour."""
    if len(plane.classes) <= COLOURS:
        return plane.labels, list(plane.classes)
    counts = np.bincount(plane.labels, minlength=len(plane.classes))
    common = np.sort(np.argsort(-counts, kind="stable")[: COLOURS - 1])
    colour = np.full(len(plane.classes), COLOURS - 1)
    colour[common] = np.arange(COLOURS - 1)
    return colour[plane.labels], [*(plane.classes[place] for place in common), _OTHERS]


def _to_pixels(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points inside the picture, the first axis horizontal; a few far ones are placed at the edge."""
    low, high = np.quantile(points, 0.005, axis=0), np.quantile(points, 0.995, axis=0)
    share = np.clip((points - low) / np.where(high > low, high - low, 1), 0, 1)
    share[:, 1] = 1 - share[:, 1]
    return np.round(_EDGE + share * (_SIDE - 2 * _EDGE), 1)


def _draw_panel(
    places: NDArray[np.float64], colours: NDArray[np.int64], target: NDArray[np.bool_], heading: str
) -> Markup:
    """Return dots for the source and crosses for the target, one path for each colour and domain."""
    parts = []
    for colour in np.unique(colours).tolist():
        chosen = colours == colour
        dots = "".join(f"M{x:g} {y:g}h0" for x, y in places[chosen & ~target].tolist())
        crosses = "".join(f"M{x - 2.5:g} {y - 2.5:g}l5 5m0-5l-5 5" for x, y in places[chosen & target].tolist())
        for kind, path in (("dot", dots), ("cross", crosses)):
            if path:
                parts.append(Markup('<path class="{} c{}" d="{}"/>').format(kind, colour, path))
    return Markup(
        '<svg class="map" viewBox="0 0 {0} {0}" role="img" aria-label="Map of features {1}">{2}</svg>'
    ).format(_SIDE, heading, Markup("").join(parts))
