import numpy as np
import pytest
from generators import draw, drawn, example_gram
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.problem import Move, Problem
from paretoda.schemes.cagrad import CAGrad, cagrad, least_move

RADII = st.sampled_from([0.1, 0.4, 1.0, 2.0])


def test_the_example_of_the_specification():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    alpha = CAGrad(c=0.5)(Problem(example_gram(), [1.0, 1.0])).alpha
    assert alpha @ rows == pytest.approx([0.25, 0.5], abs=1e-12)
    assert alpha - 0.5 == pytest.approx([0.25, 0.0], abs=1e-12)  # w = (1, 0)


@given(drawn(), RADII)
@settings(max_examples=200, deadline=None)
def test_the_duality_gap_is_closed(case, c):
    """min_i <d, g_i> equals <g_w, g_0> + c |g_0| |g_w|, which bounds it from above for every w: both are optimal."""
    rows, mean = case.rows, case.rows.mean(axis=0)
    alpha = cagrad(case.problem.gram, c)
    radius, pushes = c * np.linalg.norm(mean), alpha - 1 / len(rows)
    direction = mean + pushes @ rows
    scale = np.linalg.norm(rows, axis=1).max() ** 2
    level = (rows @ direction).min()
    assert np.linalg.norm(pushes @ rows) <= radius + 1e-9 * np.sqrt(scale)
    assert (pushes >= 0).all()
    if np.linalg.norm(pushes @ rows) < 0.999999 * radius:
        assert level >= -1e-9 * scale  # 0 is a combination of the gradients, so that no level is above 0
    elif pushes.any() and radius > 0:
        combined = pushes / pushes.sum() @ rows
        assert combined @ mean + radius * np.linalg.norm(combined) == pytest.approx(level, abs=1e-9 * scale)


@given(st.integers(2, 6), st.integers(0, 1000), RADII)
@settings(max_examples=100, deadline=None)
def test_the_step_lies_on_the_sphere_around_the_mean(m, seed, c):
    rows = np.random.default_rng(seed).normal(size=(m, 2 * m)) + 0.5  # independent: 0 is no combination
    mean = rows.mean(axis=0)
    direction = cagrad(rows @ rows.T, c) @ rows
    assert np.linalg.norm(direction - mean) == pytest.approx(c * np.linalg.norm(mean), rel=1e-9)


@given(drawn())
@settings(max_examples=50, deadline=None)
def test_c_of_zero_is_the_mean(case):
    assert (CAGrad(c=0)(case.problem).alpha == 1 / case.problem.size).all()


@given(drawn(families=("generic", "conflicting", "float32")), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_renumbered_objectives_give_the_same_direction(case, random):
    turn = list(range(len(case.rows)))
    random.shuffle(turn)
    gram = case.problem.gram
    found = cagrad(gram[np.ix_(turn, turn)], 0.4) @ case.rows[turn]
    assert found == pytest.approx(cagrad(gram, 0.4) @ case.rows, abs=1e-6 * np.abs(case.rows).max())


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_all_losses_does_not_matter(scale):
    gram = draw("conflicting", 3, 0).problem.gram
    assert cagrad(gram * scale**2, 0.4) == pytest.approx(cagrad(gram, 0.4), rel=1e-9)


def test_identical_gradients_are_followed_further_by_c():
    assert cagrad(np.ones((3, 3)), 0.4).sum() == pytest.approx(1.4)
    assert cagrad(np.ones((1, 1)), 0.4) == pytest.approx([1.4])


def test_rescale_divides_by_one_plus_c_squared():
    problem = Problem(example_gram(), [1.0, 1.0])
    assert CAGrad(0.5, rescale=True)(problem).alpha * 1.25 == pytest.approx(CAGrad(0.5)(problem).alpha)


def test_cancelling_gradients_leave_the_mean_where_it_raises_nothing():
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    assert cagrad(rows @ rows.T, 0.5) @ rows == pytest.approx([0.0, 1 / 3], abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_mean_that_cancels_leaves_no_room(seed):
    row = np.random.default_rng(seed).normal(size=(1, 6))
    rows = np.vstack([row, -row])
    assert cagrad(rows @ rows.T, 0.4).tolist() == [0.5, 0.5]


def test_all_zero_gradients_give_equal_weights():
    weights = CAGrad()(Problem(np.zeros((3, 3)), np.ones(3)))
    assert (weights.alpha == 1 / 3).all()
    assert weights.move is Move.FALLBACK


def test_the_least_move_is_the_nearest_point_of_the_half_planes():
    pushes, length = least_move(np.eye(2), np.array([3.0, 4.0]))
    assert pushes == pytest.approx([3.0, 4.0])
    assert length == pytest.approx(5.0)
    assert least_move(np.array([[1.0, -1.0]]), np.array([1.0, 1.0]))[1] == np.inf


@pytest.mark.parametrize("c", [-0.1, float("nan"), float("inf")])
def test_a_radius_that_is_none_is_refused(c):
    with pytest.raises(ValueError, match="c must be"):
        CAGrad(c=c)
