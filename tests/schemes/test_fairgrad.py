import numpy as np
import pytest
from generators import draw, drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.problem import Move, Problem
from paretoda.schemes.fairgrad import FairGrad, fair
from paretoda.schemes.nash_mtl import nash

FAIRNESS = (0.5, 1.0, 2.0, 5.0)


@given(drawn(), st.sampled_from(FAIRNESS))
@settings(max_examples=300, deadline=None)
def test_the_weights_solve_the_equation_or_the_move_says_that_they_do_not(case, fairness):
    weights = FairGrad(fairness, normalise=False)(case.problem)
    raw = case.problem.size * weights.alpha
    assert (raw >= 0).all()
    if weights.move is Move.COMBINED:
        assert case.problem.gram @ raw * raw ** (1 / fairness) == pytest.approx(np.ones(len(raw)), abs=1e-5)


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_independent_gradients_always_have_such_weights(fairness):
    for m in range(1, 9):
        for seed in range(30):
            rows = np.random.default_rng((m, seed)).normal(size=(m, 20))
            gram = rows @ rows.T
            weights = fair(gram, fairness)
            assert gram @ weights * weights ** (1 / fairness) == pytest.approx(np.ones(m), abs=1e-8)
            assert FairGrad(fairness)(Problem(gram, np.ones(m))).move is Move.COMBINED


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_two_objectives_of_one_length_have_a_closed_form(fairness):
    for cosine in (-0.9, 0.0, 0.5):
        expected = (1 + cosine) ** (-fairness / (1 + fairness))
        assert fair(np.array([[1.0, cosine], [cosine, 1.0]]), fairness) == pytest.approx([expected] * 2, rel=1e-6)


@given(st.floats(-8, 8), st.floats(-8, 8), st.sampled_from(FAIRNESS))
@settings(max_examples=50, deadline=None)
def test_orthogonal_gradients_have_a_closed_form(first, second, fairness):
    squares = 10.0 ** np.array([first, second])
    assert fair(np.diag(squares), fairness) == pytest.approx(squares ** (-fairness / (1 + fairness)), rel=1e-6)


@given(drawn(families=("generic", "wild")))
@settings(max_examples=100, deadline=None)
def test_proportional_fairness_is_nash_mtl(case):
    gram = case.problem.gram
    if np.linalg.cond(gram / np.sqrt(np.outer(np.diagonal(gram), np.diagonal(gram)))) < 1e4:
        assert fair(gram, 1.0) == pytest.approx(nash(gram), rel=1e-4)


@given(drawn(families=("generic", "guided-by-last")))
@settings(max_examples=50, deadline=None)
def test_every_objective_falls(case):
    if np.linalg.cond(case.problem.gram) < 1e4:
        assert (case.problem.gram @ FairGrad()(case.problem).alpha > 0).all()


def test_more_fairness_favours_the_worst_off():
    problem, worst = draw("generic", 3, 4).problem, []
    for fairness in (0.5, 2.0, 20.0):
        alpha = FairGrad(fairness)(problem).alpha
        worst.append((problem.gram @ alpha).min() / np.sqrt(alpha @ problem.gram @ alpha))
    assert worst == sorted(worst)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_all_losses_does_not_matter(scale):
    gram = draw("generic", 3, 0).problem.gram
    plain, changed = (FairGrad()(Problem(by**2 * gram, np.ones(3))).alpha for by in (1.0, scale))
    assert changed == pytest.approx(plain, rel=1e-9)
    raw = 3 * FairGrad(normalise=False)(Problem(scale**2 * gram, np.ones(3))).alpha
    assert (scale**2 * gram @ raw) * np.sqrt(raw) == pytest.approx(np.ones(3), rel=1e-6)


def test_cancelling_and_zero_gradients_are_fallbacks():
    assert FairGrad()(Problem([[1.0, -1.0], [-1.0, 1.0]], [1.0, 1.0])).move is Move.FALLBACK
    silent = FairGrad()(Problem(np.diag([0.0, 4.0]), [1.0, 1.0]))
    assert silent.alpha.tolist() == [0.0, 1.0]
    assert silent.move is Move.FALLBACK
    assert FairGrad()(Problem(np.zeros((2, 2)), [1.0, 1.0])).alpha.tolist() == [0.5, 0.5]
    assert FairGrad()(draw("generic", 3, 0).problem).move is Move.COMBINED


def test_a_fairness_out_of_range_is_refused():
    for wrong in (0.0, -1.0, 1e3, float("nan")):
        with pytest.raises(ValueError, match="fairness"):
            FairGrad(wrong)
