"""Pareto fronts of two losses: who is dominated, the lower convex hull, and who stands above it beyond chance."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SURE = 2.0
"""Standard errors by which a point must stand above the hull."""


@dataclass(frozen=True, eq=False)
class Front:
    """Points in the plane of two losses, both to be small, and what is known of their front.

    Args:
        points: mean over seeds, shape (n, 2).
        errors: standard errors of the means, shape (n, 2); NaN with one seed.
        best: places of the points that no other dominates, by the first loss.
        corners: places of the corners of the lower convex hull, by the first loss; a subset of `best`.
        gaps: distance of every point in `best` from the hull along its normal, both losses over their span.
        sigmas: standard errors of the gaps, of the point and of the two corners below it together.
    """

    points: Array
    errors: Array
    best: tuple[int, ...]
    corners: tuple[int, ...]
    gaps: Array
    sigmas: Array

    @property
    def above(self) -> tuple[int, ...]:
        """Places of the points that a weighted sum cannot reach: above the hull by more than two standard errors."""
        sure = self.gaps > np.maximum(_SURE * self.sigmas, 1e-9)
        return tuple(place for place, is_sure in zip(self.best, sure.tolist(), strict=True) if is_sure)

    @property
    def tested(self) -> bool:
        """Whether there is a spread over seeds to compare gaps with."""
        return bool(np.isfinite(self.errors).all())

    @property
    def sentence(self) -> str:
        """The answer."""
        between = len(self.best) - len(self.corners)
        (left, low), (right, high) = self.points[list(self.best)].min(axis=0), self.points[list(self.best)].max(axis=0)
        where = f"L_S from {left:.3g} to {right:.3g}, L_D from {low:.3g} to {high:.3g}"
        size = f"{len(self.best)} of {len(self.points)} points are not dominated ({where}), {between} above the hull"
        if not self.tested:
            return f"Cannot be told from one seed: {size}."
        found = len(self.above)
        largest = f"the largest gap is {100 * self.gaps.max(initial=0.0):.1f} % of the front's span"
        if found == 0:
            return f"No sign of a non-convex front: {size}, none by more than two standard errors; {largest}."
        return f"Non-convex: {size}, {found} by more than two standard errors; {largest}."


def non_dominated(points: Array) -> tuple[int, ...]:
    """Places of the points that no other point beats in one loss without losing in the other, by the first loss."""
    order = sorted(range(len(points)), key=lambda place: (points[place, 0], points[place, 1]))
    found: list[int] = []
    for place in order:
        if not found or points[place, 1] < points[found[-1], 1]:
            found.append(place)
    return tuple(found)


def lower_hull(points: Array, best: tuple[int, ...]) -> tuple[int, ...]:
    """Places among `best` that minimise some weighted sum of the losses (a monotone chain).

    Args:
        points: shape (n, 2).
        best: places by the first loss.
    """
    chain: list[int] = []
    for place in best:
        while len(chain) > 1 and _turn(points[chain[-2]], points[chain[-1]], points[place]) <= 0:
            chain.pop()
        chain.append(place)
    return tuple(chain)


def _turn(first: Array, second: Array, third: Array) -> float:
    """Positive where the path turns left: the middle point is below the line of the others."""
    a, b = second - first, third - first
    return float(a[0] * b[1] - a[1] * b[0])


def make_front(samples: Array) -> Front:
    """The front of n points.

    Args:
        samples: shape (n, seeds, 2).
    """
    points, seeds = samples.mean(axis=1), samples.shape[1]
    errors = samples.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.full_like(points, np.nan)
    best = non_dominated(points)
    corners = lower_hull(points, best)
    span = np.ptp(points[list(best)], axis=0)
    span = np.where(span > 0, span, 1.0)
    pairs = [_gap(place, points / span, errors / span, corners) for place in best]
    return Front(points, errors, best, corners, np.array([g for g, _ in pairs]), np.array([s for _, s in pairs]))


def _gap(place: int, points: Array, errors: Array, corners: tuple[int, ...]) -> tuple[float, float]:
    """Distance from the hull's edge below the point, and its standard error."""
    if place in corners:
        return 0.0, 0.0
    right = next(i for i, corner in enumerate(corners) if points[corner, 0] > points[place, 0])
    first, second = corners[right - 1], corners[right]
    edge = points[second] - points[first]
    normal = np.array([-edge[1], edge[0]]) / hypot(*edge.tolist())
    away = points[place] - points[first]
    share = float(np.clip(away @ edge / (edge @ edge), 0, 1))
    parts = ((1.0, place), (1 - share, first), (share, second))
    variance = sum(factor**2 * float(normal**2 @ errors[who] ** 2) for factor, who in parts)
    return float(normal @ away), float(np.sqrt(variance))
