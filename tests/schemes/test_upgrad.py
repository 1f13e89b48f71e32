import numpy as np
import pytest
from generators import draw, drawn, example_gram
from hypothesis import given, settings

from paretoda.core.certificates import is_common_descent
from paretoda.core.problem import Move, Problem
from paretoda.schemes.upgrad import UPGrad, upgrad


def test_the_example_of_the_specification():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    assert upgrad(example_gram()) @ rows == pytest.approx([0.25, 0.75])


@given(drawn())
@settings(max_examples=300, deadline=None)
def test_no_objective_rises(case):
    weights = UPGrad()(case.problem)
    assert weights.move is Move.DESCENT
    assert is_common_descent(case.problem, weights.alpha)


@given(drawn(smallest=2, largest=2))
@settings(max_examples=100, deadline=None)
def test_two_conflicting_gradients_drop_their_part_along_the_other(case):
    gram = case.problem.gram
    squares = np.where(np.diagonal(gram) > 0, np.diagonal(gram), 1.0)
    assert upgrad(gram) == pytest.approx((1 - np.minimum(gram[0, 1], 0.0) / squares) / 2, rel=1e-6)


@given(drawn())
@settings(max_examples=50, deadline=None)
def test_other_gradients_are_only_added(case):
    assert (upgrad(case.problem.gram) >= 1 / case.problem.size).all()


@given(drawn())
@settings(max_examples=50, deadline=None)
def test_without_conflict_it_is_the_mean(case):
    agreeing = np.abs(case.problem.gram)
    assert upgrad(agreeing + np.diag(agreeing.sum(axis=1))) == pytest.approx(np.full(len(agreeing), 1 / len(agreeing)))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("regularisation", [0.0, 1e-4])
def test_the_unit_of_all_losses_does_not_matter(scale, regularisation):
    gram = draw("conflicting", 3, 0).problem.gram
    assert upgrad(gram * scale**2, regularisation) == pytest.approx(upgrad(gram, regularisation), rel=1e-6)


def test_renumbered_objectives_get_renumbered_weights():
    gram, turn = draw("generic", 4, 1).problem.gram, [2, 0, 3, 1]
    assert upgrad(gram[np.ix_(turn, turn)]) == pytest.approx(upgrad(gram)[turn])


def test_regularisation_gives_up_the_promise_and_says_so():
    assert UPGrad(1e-4)(Problem(example_gram(), [1.0, 1.0])).move is Move.COMBINED
    with pytest.raises(ValueError, match="regularisation"):
        UPGrad(-1.0)


def test_zero_gradients_keep_their_share():
    assert (upgrad(np.zeros((3, 3))) == 1 / 3).all()
    assert upgrad(np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]))[2] == 1 / 3


def test_identical_gradients_are_returned():
    assert upgrad(np.ones((3, 3))) == pytest.approx([1 / 3] * 3)
