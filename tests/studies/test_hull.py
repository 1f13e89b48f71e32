"""Fronts with known answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from paretoda.studies.front import lower_hull, make_front, non_dominated

ANGLES = np.linspace(0, np.pi / 2, 9)
CONCAVE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
CONVEX = 1 - CONCAVE


def seeds(points: np.ndarray, noise: float, count: int = 5) -> np.ndarray:
    return points[:, None, :] + noise * np.random.default_rng(0).normal(size=(len(points), count, 2))


def test_on_a_convex_front_nothing_is_above_the_hull() -> None:
    front = make_front(seeds(CONVEX, 1e-4))
    assert len(front.best) == 9
    assert front.above == ()
    assert "No sign of a non-convex front" in front.sentence


def test_on_a_quarter_circle_all_but_the_ends_are_above_the_hull() -> None:
    front = make_front(seeds(CONCAVE, 1e-4))
    assert set(front.corners) == {0, 8}
    assert set(front.above) == set(range(1, 8))
    assert front.gaps.max() == pytest.approx(1 - np.sqrt(0.5), abs=1e-3)
    assert "Non-convex" in front.sentence
    assert " 7 by more than two standard errors" in front.sentence


def test_noise_larger_than_the_gap_is_no_sign() -> None:
    bent = np.array([[0.0, 1.0], [0.5, 0.51], [1.0, 0.0]])
    apart = np.array([[0.2, -0.2], [-0.2, 0.2], [0.1, 0.1], [-0.1, -0.1]])
    assert make_front(bent[:, None, :] + apart[None]).above == ()
    assert make_front(bent[:, None, :] + 1e-3 * apart[None]).above == (1,)


def test_one_seed_decides_nothing() -> None:
    front = make_front(CONCAVE[:, None, :])
    assert not front.tested
    assert front.above == ()
    assert "one seed" in front.sentence


@given(arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=st.integers(0, 20).map(float)))
def test_hull_and_dominance_by_their_definitions(points: np.ndarray) -> None:
    best = non_dominated(points)
    for place in best:
        worse = (points <= points[place]).all(axis=1) & (points < points[place]).any(axis=1)
        assert not worse.any()
    corners = lower_hull(points, best)
    assert set(corners) <= set(best)
    for share in np.linspace(0.01, 0.99, 15):
        sums = points @ np.array([share, 1 - share])
        assert sums[list(corners)].min() == pytest.approx(sums.min())
