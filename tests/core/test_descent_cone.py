"""The nearest descent direction is the solution of its quadratic programme."""

import numpy as np
import pytest
from generators import drawn
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers
from scipy.optimize import minimize

from paretoda.core.descent_cone import nearest_descent


def distance(gram, alpha, wanted):
    gap = alpha - wanted
    return gap @ gram @ gap


@given(drawn(1, 6, ("generic", "conflicting", "guided-by-last")), integers(0, 5), booleans())
@settings(max_examples=100)
def test_no_feasible_point_that_slsqp_finds_is_nearer(case, seed, plain):
    gram, dots = case.problem.gram, case.problem.guide.dots
    wanted = np.full(len(gram), 1 / len(gram)) if plain else np.random.default_rng(seed).random(len(gram))
    alpha = nearest_descent(gram, dots, None if plain else wanted)
    assert (alpha >= 0).all()
    assert (gram @ alpha >= -1e-9 * np.abs(gram).max()).all()
    assert dots @ alpha >= -1e-9 * np.abs(dots).max()
    rows = np.vstack([gram, dots])
    answer = minimize(
        lambda a: distance(gram, a, wanted),
        np.zeros(len(gram)),
        jac=lambda a: 2 * gram @ (a - wanted),
        bounds=[(0, None)] * len(gram),
        constraints={"type": "ineq", "fun": lambda a: rows @ a, "jac": lambda _: rows},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert distance(gram, alpha, wanted) <= answer.fun + 1e-6 * (1 + answer.fun)


@given(drawn(1, 8, ("generic",)))
@settings(max_examples=100)
def test_gradients_that_agree_are_summed(case):
    rows = np.abs(case.rows)
    alpha = nearest_descent(rows @ rows.T, rows @ rows.sum(axis=0))
    assert alpha == pytest.approx(np.full(len(rows), 1 / len(rows)), rel=1e-6)


def test_a_guide_against_everything_leaves_nothing():
    assert nearest_descent(np.eye(2), np.array([-1.0, -1.0])) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_zero_gradient_keeps_its_share():
    alpha = nearest_descent(np.diag([1.0, 0.0]), np.array([-1.0, 0.0]))
    assert alpha == pytest.approx([0.0, 0.5])
