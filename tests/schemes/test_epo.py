"""EPO's non-uniformity, its anchoring direction and its two programmes."""

import numpy as np
import pytest
from generators import drawn, problem_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.certificates import is_common_descent
from paretoda.core.problem import Move, Problem
from paretoda.schemes import EPO
from paretoda.schemes.epo import non_uniformity

positive = st.lists(st.floats(0.05, 20.0), min_size=2, max_size=6)


def test_the_values_of_the_specification():
    distance, anchor = non_uniformity(np.array([1.0, 3.0]), np.ones(2))
    assert distance == pytest.approx(0.130812, abs=1e-6)
    assert anchor == pytest.approx([-0.823959, 0.274653], abs=1e-6)
    distance, anchor = non_uniformity(np.array([1.0, 3.0]), np.array([2.0, 1.0]))
    assert distance == pytest.approx(0.020136, abs=1e-6)
    assert anchor == pytest.approx([-0.486558, 0.162186], abs=1e-6)


@given(positive, st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_the_anchor_is_orthogonal_to_the_losses_and_is_the_gradient_of_the_distance(losses, seed):
    losses = np.array(losses)
    preference = np.random.default_rng(seed).uniform(0.1, 10, size=len(losses))
    distance, anchor = non_uniformity(losses, preference)
    assert distance >= -1e-12
    assert abs(anchor @ losses) <= 1e-9 * np.abs(anchor * losses).sum() + 1e-9
    for j in range(len(losses)):
        step = 1e-4 * losses[j] * np.eye(len(losses))[j]
        change = non_uniformity(losses + step, preference)[0] - non_uniformity(losses - step, preference)[0]
        slope = change / (2 * step[j])
        assert slope * (preference @ losses) == pytest.approx(anchor[j], abs=1e-4 * (1 + abs(anchor[j])))


@given(positive)
def test_inverse_preferences_are_balanced(losses):
    assert non_uniformity(np.array(losses), 1 / np.array(losses))[0] == pytest.approx(0, abs=1e-12)


@given(drawn(2, 6))
@settings(max_examples=300)
def test_on_the_ray_the_relaxed_form_raises_no_objective(case):
    problem = Problem(case.problem.gram, np.ones(case.problem.size))
    weights = EPO(restricted=False)(problem)
    assert weights.move is Move.DESCENT
    assert is_common_descent(problem, weights.alpha)


@given(drawn(2, 6))
@settings(max_examples=300)
def test_off_the_ray_the_largest_weighted_loss_does_not_rise(case):
    weights = EPO()(case.problem)
    if weights.move is Move.BALANCE:
        _, anchor = non_uniformity(case.problem.losses, np.ones(case.problem.size))
        balance, worst = case.problem.gram @ anchor, int(np.argmax(case.problem.losses))
        rise = case.problem.gram[worst] @ weights.alpha
        if (balance > 0).any():
            assert rise >= -1e-8 * np.abs(case.problem.gram[worst]).max()


def test_restricted_and_relaxed_differ_where_descent_leaves_the_ray():
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(200):
        losses = np.array([1.0, 1.01, 0.99])
        problem = problem_of(rng.normal(size=(3, 4)), None, losses)
        restricted, relaxed = EPO()(problem), EPO(restricted=False)(problem)
        balance = problem.gram @ non_uniformity(losses, np.ones(3))[1]
        if restricted.move is Move.FALLBACK:
            assert restricted.alpha == pytest.approx([1 / 3] * 3)
        else:
            assert balance @ restricted.alpha >= min(balance.max(), 0) - 1e-9 * np.abs(balance).max()
        differ += not np.allclose(restricted.alpha, relaxed.alpha)
    assert differ > 20


def test_bad_preferences_are_refused():
    with pytest.raises(ValueError, match="must be positive"):
        EPO(preference=(1.0, -1.0))
    with pytest.raises(ValueError, match="2 preferences for 3 losses"):
        EPO(preference=(1.0, 1.0))(problem_of(np.eye(3), None, np.ones(3)))
