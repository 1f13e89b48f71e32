"""Certificates say what the inner products prove, and no more."""

import numpy as np
from generators import drawn, problem_of
from hypothesis import given, settings

from paretoda.core.certificates import is_common_descent, is_critical, is_stationary, keeps_guarantee
from paretoda.core.min_norm import min_norm


@given(drawn())
@settings(max_examples=200)
def test_the_min_norm_point_is_a_common_descent_direction(case):
    assert is_common_descent(case.problem, min_norm(case.problem.gram))


def test_a_rising_objective_is_seen():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    problem = problem_of(rows, np.array([1.0, 0.0]), np.ones(2))
    assert not is_common_descent(problem, np.array([1.0, 0.0]))
    assert keeps_guarantee(problem, np.array([1.0, 0.0]))  # the guide falls
    away = problem_of(rows, np.array([-1.0, 0.0]), np.ones(2))
    assert not keeps_guarantee(away, np.array([1.0, 0.0]))


def test_stationary_and_critical_differ_by_a_zero_gradient():
    opposed = np.array([[1.0, -2.0], [-2.0, 4.0]])
    assert is_stationary(opposed)
    assert is_critical(opposed)
    assert is_stationary(np.diag([0.0, 1.0]))
    assert not is_critical(np.diag([0.0, 1.0]))
    assert not is_stationary(np.eye(3))
    assert not is_critical(np.eye(3))
    assert is_critical(np.zeros((2, 2)))


def test_three_gradients_round_the_origin_are_critical_at_any_scale():
    angles = 2 * np.pi * np.arange(3) / 3
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.array([[1e-6], [1.0], [1e6]])
    assert is_critical(rows @ rows.T, tolerance=1e-9)
    assert is_stationary(rows @ rows.T, tolerance=1e-9)
