import json

import numpy as np
import pytest
from generators import drawn
from hypothesis import given, settings

from paretoda.core.problem import Move, Problem
from paretoda.schemes.gradnorm import GradNorm, gradnorm_slope


def problem(norms, losses):
    return Problem(np.diag(np.square(norms)), losses)


def objective(weights, norms, ratios, asymmetry, goal):
    return np.abs(weights * norms - goal * (ratios / ratios.mean()) ** asymmetry).sum() / goal


def test_the_slope_is_the_derivative_with_the_targets_held_fixed():
    weights, ratios = np.array([0.5, 1.0, 1.5]), np.array([0.9, 0.2, 0.5])
    norms = np.array([1.9, 0.3, 0.8]) / weights  # between r and r^1.5, so that the exponent decides the signs
    slope = gradnorm_slope(weights, norms, ratios, 1.5)
    goal = (weights * norms).mean()
    for own, step in enumerate(1e-6 * np.eye(3)):
        ends = [objective(weights + sign * step, norms, ratios, 1.5, goal) for sign in (1, -1)]
        assert slope[own] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def test_equal_gradients_and_rates_are_at_rest():
    scheme = GradNorm()
    for step in range(10):
        losses = np.array([0.7, 0.1, 2.0]) / (1 + step) ** 0.3
        assert scheme(problem([0.3, 0.3, 0.3], losses)).alpha.tolist() == [1 / 3] * 3


def test_a_doubled_gradient_loses_weight_until_the_lengths_are_equal():
    scheme = GradNorm(asymmetry=0.0)
    first = scheme(problem([2.0, 1.0], [1.0, 1.0])).alpha
    second = scheme(problem([2.0, 1.0], [1.0, 1.0])).alpha
    assert first.tolist() == [0.5, 0.5]
    assert second[0] < first[0]
    for _ in range(300):
        last = scheme(problem([2.0, 1.0], [1.0, 1.0])).alpha
    assert last == pytest.approx([1 / 3, 2 / 3], abs=0.02)


def test_the_slower_objective_gains_weight():
    scheme = GradNorm()
    scheme(problem([1.0, 1.0], [1.0, 1.0]))
    scheme(problem([1.0, 1.0], [0.9, 0.1]))
    alpha = scheme(problem([1.0, 1.0], [0.9, 0.1])).alpha
    assert alpha[0] > alpha[1]


@given(drawn())
@settings(max_examples=50, deadline=None)
def test_weights_are_positive_with_sum_one(case):
    scheme = GradNorm()
    for _ in range(3):
        weights = scheme(case.problem)
    assert (weights.alpha > 0).all()
    assert weights.alpha.sum() == pytest.approx(1.0)
    assert weights.move is Move.LEARNED


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_all_losses_does_not_matter(scale):
    plain, scaled = GradNorm(), GradNorm()
    for losses in ([1.0, 2.0], [0.5, 1.5], [0.4, 1.0]):
        ours = plain(problem([2.0, 1.0], losses)).alpha
        theirs = scaled(problem([2.0 * scale, scale], losses)).alpha
    assert theirs == pytest.approx(ours, rel=1e-9)


def test_a_restart_goes_on_with_the_same_bits():
    rng = np.random.default_rng(0)
    scheme, fresh = GradNorm(), GradNorm()
    fresh.load_state_dict(GradNorm().state_dict())
    for step in range(6):
        if step == 3:
            fresh.load_state_dict(json.loads(json.dumps(scheme.state_dict())))
        now = problem(rng.exponential(size=3), rng.exponential(size=3))
        expected = scheme(now).alpha.tolist()
        if step >= 3:
            assert fresh(now).alpha.tolist() == expected


def test_another_number_of_objectives_is_refused():
    scheme = GradNorm()
    scheme(problem([1.0, 1.0], [1.0, 1.0]))
    with pytest.raises(ValueError, match="remembers 2 objectives but was given 3"):
        scheme(problem([1.0] * 3, [1.0] * 3))


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="asymmetry"):
        GradNorm(asymmetry=-1)
    with pytest.raises(ValueError, match="rate"):
        GradNorm(rate=float("nan"))
