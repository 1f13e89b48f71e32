"""Fixed weights and the min-norm direction."""

import numpy as np
import pytest
from generators import drawn, example_gram, problem_of
from hypothesis import given, settings

from paretoda.core.certificates import is_common_descent
from paretoda.core.problem import Move, Problem
from paretoda.schemes import MGDA, Linear


def test_linear_is_the_plain_sum_or_the_given_weights():
    problem = problem_of(np.eye(3), None, np.ones(3))
    assert (3 * Linear()(problem).alpha).tolist() == [1.0, 1.0, 1.0]
    weights = Linear((1.0, 0.3, 0.3))
    assert (3 * weights(problem).alpha).tolist() == [1.0, 0.3, 0.3]
    assert weights.ahead(np.ones(3)).move is Move.FIXED
    with pytest.raises(ValueError, match="3 weights for 2 losses"):
        weights(problem_of(np.eye(2), None, np.ones(2)))
    with pytest.raises(ValueError, match="finite"):
        Linear((float("nan"),))


def test_mgda_of_the_example():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    weights = MGDA()(Problem(example_gram(), np.ones(2)))
    assert weights.alpha == pytest.approx([0.6, 0.4])
    assert weights.alpha @ rows == pytest.approx([0.2, 0.4])


@pytest.mark.parametrize("normalise", ["none", "l2", "loss", "loss+"])
@given(case=drawn())
@settings(max_examples=150)
def test_mgda_stays_a_common_descent_direction_under_every_normalisation(normalise, case):
    weights = MGDA(normalise=normalise)(case.problem)
    assert weights.alpha.sum() == pytest.approx(1.0)
    assert is_common_descent(case.problem, weights.alpha)


def test_normalised_mgda_does_not_depend_on_the_scale_of_a_loss():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3, 5))
    scale = np.array([[1e-3], [1.0], [1e3]])
    one = MGDA(normalise="l2")(problem_of(rows, None, np.ones(3))).alpha @ rows
    two = MGDA(normalise="l2")(problem_of(scale * rows, None, np.ones(3))).alpha @ (scale * rows)
    assert one / np.linalg.norm(one) == pytest.approx(two / np.linalg.norm(two), abs=1e-9)
    with pytest.raises(ValueError, match="normalise must be one of"):
        MGDA(normalise="l3")(problem_of(rows, None, np.ones(3)))  # type: ignore[arg-type]


@pytest.mark.parametrize("normalise", ["none", "l2", "loss", "loss+"])
def test_an_objective_without_a_gradient_has_no_say_in_mgda(normalise):
    gram = np.array([[2.0, -0.5, 0.0], [-0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    alpha = MGDA(normalise)(Problem(gram, [0.7, 0.2, 1e-8])).alpha
    assert alpha[2] == 0
    assert alpha[:2] == pytest.approx(MGDA(normalise)(Problem(gram[:2, :2], [0.7, 0.2])).alpha)
    assert MGDA(normalise)(Problem(np.zeros((3, 3)), np.ones(3))).alpha == pytest.approx([1 / 3] * 3)
