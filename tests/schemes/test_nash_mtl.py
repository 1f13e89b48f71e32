import numpy as np
import pytest
from generators import draw, drawn, example_gram
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Move, Problem
from paretoda.schemes.nash_mtl import NashMTL, bargain, nash


def test_the_example_of_the_specification():
    assert nash(example_gram()) == pytest.approx([1.847759, 1.306563], abs=1e-6)


@given(st.floats(-0.99, 0.99), st.floats(-8, 8), st.floats(-8, 8))
@settings(max_examples=100, deadline=None)
def test_two_objectives_have_a_closed_form(cosine, first, second):
    norms = 10.0 ** np.array([first, second])
    gram = np.outer(norms, norms) * np.array([[1.0, cosine], [cosine, 1.0]])
    assert nash(gram) == pytest.approx(1 / (norms * np.sqrt(1 + cosine)), rel=1e-5)


@given(drawn())
@settings(max_examples=200, deadline=None)
def test_the_bargain_solves_its_equation(case):
    angles, cap = cosines(case.problem.gram), 1e4
    found = bargain(angles, cap)
    assert (found > 0).all()
    assert found * (angles @ found + found / cap**2) == pytest.approx(np.ones_like(found), abs=1e-6)
    assert np.linalg.norm(found) <= cap * np.sqrt(len(found)) * (1 + 1e-6)


@given(drawn())
@settings(max_examples=100, deadline=None)
def test_weights_are_finite_and_the_step_is_bounded(case):
    alpha = NashMTL()(case.problem).alpha
    step = len(alpha) * np.linalg.norm(alpha @ case.rows)
    assert (alpha >= 0).all()
    if NashMTL()(case.problem).move is Move.COMBINED:
        assert step <= 1 + 1e-6


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_without_a_bound_the_unit_of_all_losses_does_not_matter(scale):
    gram, scheme = draw("generic", 3, 0).problem.gram, NashMTL(max_norm=None)
    changed = scheme(Problem(gram * scale**2, np.ones(3))).alpha
    assert changed == pytest.approx(scheme(Problem(gram, np.ones(3))).alpha, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e8])
def test_scaling_one_loss_leaves_the_direction(scale):
    rows = draw("generic", 3, 0).rows
    scaled = rows * np.array([[1.0], [scale], [1.0]])
    assert nash(scaled @ scaled.T) @ scaled == pytest.approx(nash(rows @ rows.T) @ rows, rel=1e-6)


def test_renumbered_objectives_get_renumbered_weights():
    gram, turn = draw("conflicting", 4, 1).problem.gram, [2, 0, 3, 1]
    assert nash(gram[np.ix_(turn, turn)]) == pytest.approx(nash(gram)[turn], rel=1e-5)


def test_the_bound_shortens_long_steps_and_leaves_short_ones():
    rows = draw("generic", 3, 0).rows
    for scale, length in ((1e3, 1.0), (1e-6, None)):
        gram = scale**2 * rows @ rows.T
        free = NashMTL(max_norm=None)(Problem(gram, np.ones(3))).alpha
        kept = NashMTL()(Problem(gram, np.ones(3))).alpha
        if length is None:
            assert kept.tolist() == free.tolist()
        else:
            assert 3 * np.linalg.norm(kept @ rows * scale) == pytest.approx(length)
            assert kept / kept.sum() == pytest.approx(free / free.sum())


def test_opposite_gradients_stop_at_the_cap():
    opposite = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert nash(opposite, cap=100.0) == pytest.approx([100.0, 100.0])
    assert NashMTL()(Problem(opposite, [1.0, 1.0])).move is Move.FALLBACK


def test_zero_gradients_are_left_out():
    weights = NashMTL(max_norm=None)(Problem(np.diag([0.0, 4.0]), [1.0, 1.0]))
    assert weights.alpha == pytest.approx([0.0, 0.5])
    assert weights.move is Move.FALLBACK
    assert (NashMTL()(Problem(np.zeros((2, 2)), [1.0, 1.0])).alpha == 0.5).all()


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="cap"):
        NashMTL(cap=0)
    with pytest.raises(ValueError, match="max_norm"):
        NashMTL(max_norm=0)
