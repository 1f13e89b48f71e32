import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.core.problem import AheadScheme, Move, Problem, ProblemError, StatefulScheme
from paretoda.schemes.dwa import DWA, dwa

LOSSES = st.lists(st.floats(1e-8, 1e8), min_size=1, max_size=6)


@given(LOSSES, st.floats(1e-6, 1e6))
def test_equal_rates_give_ones(losses, rate):
    older = np.array(losses)
    assert dwa(rate * older, older, 2.0) == pytest.approx(np.ones(len(losses)), rel=1e-6)


@given(st.lists(st.tuples(st.floats(1e-8, 1e8), st.floats(1e-8, 1e8)), min_size=1, max_size=6))
def test_weights_sum_to_the_number_of_objectives(pairs):
    newer, older = np.array(pairs).T
    assert dwa(newer, older, 2.0).sum() == pytest.approx(len(pairs))


def test_the_formula():
    found = dwa(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 2.0)
    powers = np.exp([0.25, 0.75])
    assert found == pytest.approx(2 * powers / powers.sum())


def test_two_periods_of_equal_weights_then_the_ratio_of_their_means():
    scheme, run = DWA(window=3), []
    for step in range(9):
        period = step // 3
        run.append(scheme.ahead(np.array([[4.0, 4.0], [2.0, 3.0], [9.0, 2.0]][period]) + (step % 3 - 1)).alpha)
    assert all(alpha.tolist() == [0.5, 0.5] for alpha in run[:6])
    expected = dwa(np.array([2.0, 3.0]), np.array([4.0, 4.0]), 2.0) / 2
    for alpha in run[6:]:
        assert alpha == pytest.approx(expected)


def test_the_call_is_the_same_as_ahead():
    one, other = DWA(window=1), DWA(window=1)
    for losses in ([1.0, 2.0], [0.5, 1.5], [3.0, 0.1], [1.0, 1.0]):
        weights = one(Problem(np.eye(2), losses))
        assert weights.alpha.tolist() == other.ahead(np.array(losses)).alpha.tolist()
        assert weights.move is Move.LEARNED
    assert isinstance(one, AheadScheme)
    assert isinstance(one, StatefulScheme)


def test_a_restart_goes_on_with_the_same_bits():
    rng = np.random.default_rng(0)
    scheme, fresh = DWA(window=2), DWA(window=2)
    for step in range(12):
        if step == 5:
            fresh.load_state_dict(json.loads(json.dumps(scheme.state_dict())))
        losses = rng.exponential(size=3)
        expected = scheme.ahead(losses).alpha.tolist()
        if step >= 5:
            assert fresh.ahead(losses).alpha.tolist() == expected


def test_what_cannot_be_remembered_is_refused():
    scheme = DWA()
    scheme.ahead(np.ones(2))
    with pytest.raises(ValueError, match="remembers 2 objectives but was given 3"):
        scheme.ahead(np.ones(3))
    before = scheme.state_dict()
    with pytest.raises(ProblemError, match=r"losses\[1\] is nan"):
        scheme.ahead(np.array([1.0, np.nan]))
    assert scheme.state_dict() == before


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="temperature"):
        DWA(temperature=0)
    with pytest.raises(ValueError, match="window"):
        DWA(window=0)
