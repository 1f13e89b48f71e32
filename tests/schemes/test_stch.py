import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.problem import SMALLEST_LOSS
from paretoda.schemes.stch import STCH, smooth_tchebycheff

POSITIVE = st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3).map(np.array)


def value(losses, references, smoothing):
    return smoothing * np.log(np.exp(np.log(losses / references) / smoothing).sum())


@given(POSITIVE, POSITIVE, st.floats(0.2, 1))
@settings(max_examples=100, deadline=None)
def test_the_weights_are_the_derivative_divided_by_its_sum(losses, references, smoothing):
    losses = references * (1 + losses / 1e3)
    nudges = 1e-6 * np.diag(losses)
    ups, downs = ([value(losses + sign * nudge, references, smoothing) for nudge in nudges] for sign in (1, -1))
    slopes = (np.array(ups) - np.array(downs)) / (2e-6 * losses)
    assert smooth_tchebycheff(losses, references, smoothing) == pytest.approx(slopes / slopes.sum(), rel=1e-5)


def test_with_full_smoothing_the_ratios_are_those_of_one_over_the_references():
    weights = smooth_tchebycheff(np.array([5.0, 0.1]), np.array([1.0, 4.0]), 1.0)
    assert weights == pytest.approx([0.8, 0.2])


def test_with_little_smoothing_the_relatively_largest_loss_has_all_the_weight():
    weights = smooth_tchebycheff(np.array([2.0, 1.0, 1.0]), np.array([2.0, 2.0, 0.9]), 0.01)
    assert weights == pytest.approx([0, 0, 1], abs=1e-3)


@given(st.integers(0, 100), st.floats(-3, 3))
@settings(max_examples=50, deadline=None)
def test_scaling_a_loss_after_its_warm_up_leaves_the_direction(seed, exponent):
    rng, by = np.random.default_rng(seed), np.array([1.0, 10.0**exponent, 1.0])
    one, two = STCH(warm_up=3), STCH(warm_up=3)
    for _ in range(6):
        losses = rng.uniform(0.1, 2, size=3)
        plain, scaled = one.ahead(losses).alpha, two.ahead(by * losses).alpha * by
    assert scaled / scaled.sum() == pytest.approx(plain, rel=1e-9)


def test_the_warm_up_is_the_plain_sum_and_its_mean_the_reference():
    scheme = STCH(smoothing=1.0, warm_up=2)
    for losses in ([1.0, 1.0], [3.0, 5.0]):
        assert scheme.ahead(np.array(losses)).alpha.tolist() == [0.5, 0.5]
    assert scheme.ahead(np.array([9.0, 9.0])).alpha == pytest.approx([0.6, 0.4])  # z is 2 and 3


def test_a_loss_that_begins_later_has_a_warm_up_of_its_own():
    scheme = STCH(smoothing=1.0, warm_up=2)
    for losses in ([1.0, 1.0, 0.0], [1.0, 1.0, -1.0]):
        scheme.ahead(np.array(losses))
    for _ in range(3):
        assert scheme.ahead(np.array([1.0, 1.0, 0.0])).alpha == pytest.approx([1 / 3] * 3)
    for _ in range(2):
        assert scheme.ahead(np.array([2.0, 1.0, 4.0])).alpha[2] == pytest.approx(1 / 3)
    assert scheme.ahead(np.array([2.0, 1.0, 4.0])).alpha == pytest.approx(np.array([4, 4, 1]) / 9)


def test_a_loss_that_is_not_positive_counts_as_solved():
    scheme = STCH(warm_up=1)
    scheme.ahead(np.ones(2))
    assert scheme.ahead(np.array([1.0, -3.0])).alpha == pytest.approx([1, SMALLEST_LOSS], abs=1e-7)
    assert np.isfinite(scheme.ahead(np.array([-1.0, -3.0])).alpha).all()


def test_settings_out_of_range_are_refused():
    for wrong in ({"smoothing": 0}, {"smoothing": 1.5}, {"warm_up": 0}):
        with pytest.raises(ValueError, match=r"smoothing|warm_up"):
            STCH(**wrong)
