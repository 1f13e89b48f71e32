"""The linear programme is exact: feasible to 1e-9, and no other solver finds more."""

import numpy as np
import pytest
from generators import draw, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from paretoda.core import linear_program
from paretoda.core.linear_program import TOLERANCE, maximise
from paretoda.schemes.paretoda_paper import guided_bounds


def scaled(rows, bounds):
    scales = np.abs(rows).max(axis=1)
    kept = np.isfinite(bounds) & (scales > 0)
    return rows[kept] / scales[kept, None], bounds[kept] / scales[kept]


def highs(objective, rows, bounds):
    """The oracle's best value on the scaled programme, bounds relaxed by our tolerance."""
    rows, bounds = scaled(rows, bounds)
    more = {"A_ub": -rows, "b_ub": TOLERANCE - bounds} if len(rows) else {}
    answer = linprog(-objective, A_eq=np.ones((1, len(objective))), b_eq=[1.0], method="highs", **more)
    return None if answer.status else -answer.fun


@given(drawn())
@settings(max_examples=800)
def test_equation_6_always_has_a_solution_and_ours_is_as_good_as_highs(case):
    problem, dots = case.problem, case.problem.guide.dots
    bounds = guided_bounds(dots)
    weights = maximise(dots, problem.gram, bounds)
    assert weights is not None
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    rows, limits = scaled(problem.gram, bounds)
    assert (rows @ weights >= limits - TOLERANCE).all()
    scale = max(np.abs(dots).max(), 1e-300)
    assert dots @ weights / scale == pytest.approx(highs(dots / scale, problem.gram, bounds), abs=1e-6)


@given(st.integers(1, 7), st.integers(0, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=400)
def test_any_programme_is_solved_or_found_empty_as_highs_does(m, k, seed):
    rng = np.random.default_rng(seed)
    rows, bounds, objective = rng.normal(size=(k, m)), rng.normal(size=k) * 0.3, rng.normal(size=m)
    weights, best = maximise(objective, rows, bounds), highs(objective, rows, bounds)
    assert (weights is None) == (best is None)
    if weights is not None:
        assert objective @ weights == pytest.approx(best, abs=1e-6)


@given(drawn(3, 3))
@settings(max_examples=300)
def test_the_clipped_triangle_and_the_vertices_agree(case):
    dots = case.problem.guide.dots
    rows, bounds = scaled(case.problem.gram, guided_bounds(dots))
    objective = dots / max(np.abs(dots).max(), 1e-300)
    one = linear_program._clipped(objective, rows, bounds - 5e-10)
    two = linear_program._enumerated(objective, rows, bounds - 5e-10)
    assert one is not None
    assert two is not None
    assert objective @ one == pytest.approx(objective @ two, abs=1e-7)


def test_rows_that_cannot_be_met_give_none():
    assert maximise(np.ones(3), np.array([[1.0, 1.0, 1.0]]), np.array([2.0])) is None
    assert maximise(np.ones(2), np.zeros((1, 2)), np.array([1e-3])) is None


def test_without_rows_the_best_corner_wins():
    for m in (1, 2, 3, 5, 7):
        objective = np.arange(m, dtype=float)
        assert maximise(objective, np.zeros((0, m)), np.zeros(0)).tolist() == np.eye(m)[-1].tolist()


def test_among_equal_corners_the_one_with_the_largest_smallest_slack_wins():
    rows = np.array([[1.0, 3.0, 2.0]])
    assert maximise(np.ones(3), rows, np.zeros(1)).tolist() == [0, 1, 0]


def test_unscaled_rows_of_length_1e8_do_not_hide_the_small_ones():
    case = draw("wild", 3, 12)
    dots = case.problem.guide.dots
    weights = maximise(dots, case.problem.gram, guided_bounds(dots))
    direction = weights @ case.rows
    for j, bound in enumerate(guided_bounds(dots)):
        if np.isfinite(bound):
            assert direction @ case.rows[j] >= bound - 1e-8 * np.abs(case.problem.gram[j]).max()
