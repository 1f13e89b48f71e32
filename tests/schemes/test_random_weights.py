import numpy as np
import pytest

from paretoda.core.problem import Move
from paretoda.schemes.random_weights import RandomWeights


def sequence(scheme, count, size=3):
    return np.array([scheme.ahead(np.ones(size)).alpha for _ in range(count)])


def test_the_weights_lie_on_the_simplex_and_are_the_plain_sum_on_average():
    found = sequence(RandomWeights(), 2000)
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(2000))
    assert found.mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.02)


def test_the_spread_is_that_of_the_distribution():
    for concentration in (0.5, 1.0, 10.0):
        found = sequence(RandomWeights(concentration), 3000)
        assert found.var(axis=0) == pytest.approx([2 / 9 / (3 * concentration + 1)] * 3, rel=0.15)


def test_the_seed_and_the_step_decide_the_weights():
    first = sequence(RandomWeights(), 5)
    assert first.tolist() == sequence(RandomWeights(), 5).tolist()
    assert first.tolist() != sequence(RandomWeights(seed=1), 5).tolist()
    assert len({tuple(row) for row in first.tolist()}) == 5
    assert RandomWeights().ahead(np.ones(2)).move is Move.FIXED


def test_settings_out_of_range_are_refused():
    for wrong in ({"concentration": 0}, {"concentration": float("inf")}, {"seed": -1}):
        with pytest.raises(ValueError, match=r"concentration|seed"):
            RandomWeights(**wrong)
