import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from paretoda.core.problem import AheadScheme, Move, Problem
from paretoda.schemes.famo import FAMO, famo_slope


@given(st.integers(1, 6), st.floats(0, 1e8))
def test_equal_losses_give_the_mean_gradient(m, loss):
    scheme = FAMO()
    for _ in range(3):
        assert scheme.ahead(np.full(m, loss)).alpha == pytest.approx(np.full(m, 1 / m))


def test_the_first_weights_are_the_inverse_losses():
    assert FAMO().ahead(np.array([1.0, 3.0])).alpha == pytest.approx([0.75, 0.25], rel=1e-6)


def test_the_slope_is_the_derivative_of_the_weighted_fall():
    logits, before, after = np.array([0.1, -0.4, 0.2]), np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.5, 1.0])
    fall = np.log(before) - np.log(after)
    slope = famo_slope(logits, before, after)
    for own, step in enumerate(1e-6 * np.eye(3)):
        numeric = (softmax(logits + step) - softmax(logits - step)) @ fall / 2e-6
        assert slope[own] == pytest.approx(numeric, rel=1e-5)


def test_the_loss_that_fell_most_loses_share():
    scheme = FAMO()
    first = scheme.ahead(np.ones(2)).alpha
    scheme.observe(np.array([0.1, 0.9]))
    second = scheme.ahead(np.ones(2)).alpha
    assert first.tolist() == [0.5, 0.5]
    assert second[0] < 0.5 < second[1]


def test_without_observe_the_next_losses_stand_in():
    told, untold = FAMO(), FAMO()
    rng = np.random.default_rng(0)
    for step in range(5):
        losses = rng.exponential(size=3)
        if step:
            told.observe(losses)
        assert told.ahead(losses).alpha.tolist() == untold.ahead(losses).alpha.tolist()


@given(st.lists(st.floats(0, 1e8), min_size=1, max_size=5), st.lists(st.floats(0, 1e8), min_size=5, max_size=5))
def test_weights_are_finite_with_sum_one(losses, later):
    scheme = FAMO()
    scheme.ahead(np.array(losses))
    scheme.observe(np.array(later[: len(losses)]))
    alpha = scheme.ahead(np.array(losses)).alpha
    assert (alpha >= 0).all()
    assert alpha.sum() == pytest.approx(1.0)


def test_the_call_is_the_same_as_ahead():
    one, other = FAMO(), FAMO()
    for losses in ([1.0, 2.0], [0.5, 1.5], [3.0, 0.1]):
        weights = one(Problem(np.eye(2), losses))
        assert weights.alpha.tolist() == other.ahead(np.array(losses)).alpha.tolist()
        assert weights.move is Move.LEARNED
    assert isinstance(one, AheadScheme)


@pytest.mark.parametrize("observed", [True, False])
def test_a_restart_goes_on_with_the_same_bits(observed):
    rng = np.random.default_rng(0)
    scheme, fresh = FAMO(), FAMO()
    fresh.load_state_dict(FAMO().state_dict())
    for step in range(8):
        if step == 3:
            fresh.load_state_dict(json.loads(json.dumps(scheme.state_dict())))
        losses, later = rng.exponential(size=(2, 3))
        run = [scheme, fresh] if step >= 3 else [scheme]
        alphas = [one.ahead(losses).alpha.tolist() for one in run]
        assert alphas[0] == alphas[-1]
        for one in run:
            if observed:
                one.observe(later)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="nothing to compare"):
        FAMO().observe(np.ones(2))
    scheme = FAMO()
    scheme.ahead(np.ones(2))
    for ask in (scheme.ahead, scheme.observe):
        with pytest.raises(ValueError, match="remembers 2 objectives but was given 3"):
            ask(np.ones(3))
    with pytest.raises(ValueError, match="decay"):
        FAMO(decay=-1)
