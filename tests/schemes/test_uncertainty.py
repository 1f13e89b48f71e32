import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.core.problem import AheadScheme, Move, Problem
from paretoda.schemes.uncertainty import Uncertainty, uncertainty_slope


def test_the_slope_is_zero_exactly_at_the_logarithm_of_the_loss():
    losses = np.array([1e-8, 0.3, 1.0, 1e8])
    assert uncertainty_slope(np.log(losses), losses) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (uncertainty_slope(np.log(losses) + 0.1, losses) > 0).all()
    assert (uncertainty_slope(np.log(losses) - 0.1, losses) < 0).all()


def test_the_slope_is_the_derivative_of_the_loss():
    start, losses, step = np.array([0.2, -0.3]), np.array([0.7, 2.0]), 1e-6
    ends = [(np.exp(-s) * losses + s) for s in (start + step, start - step)]
    assert uncertainty_slope(start, losses) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_it_begins_with_the_plain_sum_and_learns_the_inverse_losses():
    scheme, losses = Uncertainty(), np.array([0.5, 2.0, 1.0])
    assert scheme.ahead(losses).alpha.tolist() == [1 / 3] * 3
    for _ in range(500):
        alpha = scheme.ahead(losses).alpha
    assert 3 * alpha == pytest.approx(1 / losses, rel=0.01)


@given(st.lists(st.floats(0, 1e8), min_size=1, max_size=5))
def test_weights_stay_finite_and_positive(losses):
    scheme = Uncertainty()
    for _ in range(5):
        alpha = scheme.ahead(np.array(losses)).alpha
    assert (alpha > 0).all()


def test_the_call_is_the_same_as_ahead():
    one, other = Uncertainty(), Uncertainty()
    for losses in ([1.0, 2.0], [0.5, 1.5], [3.0, 0.1]):
        weights = one(Problem(np.eye(2), losses))
        assert weights.alpha.tolist() == other.ahead(np.array(losses)).alpha.tolist()
        assert weights.move is Move.LEARNED
    assert isinstance(one, AheadScheme)


def test_a_restart_goes_on_with_the_same_bits():
    rng = np.random.default_rng(0)
    scheme, fresh = Uncertainty(), Uncertainty()
    for step in range(6):
        if step == 3:
            fresh.load_state_dict(json.loads(json.dumps(scheme.state_dict())))
        losses = rng.exponential(size=3)
        expected = scheme.ahead(losses).alpha.tolist()
        if step >= 3:
            assert fresh.ahead(losses).alpha.tolist() == expected


def test_another_number_of_objectives_and_settings_out_of_range_are_refused():
    scheme = Uncertainty()
    scheme.ahead(np.ones(2))
    with pytest.raises(ValueError, match="remembers 2 objectives but was given 3"):
        scheme.ahead(np.ones(3))
    with pytest.raises(ValueError, match="rate"):
        Uncertainty(rate=-1)
    with pytest.raises(ValueError, match="start"):
        Uncertainty(start=float("nan"))
