"""What the authors' script computes, with its fall-back and its added gradients."""

import numpy as np
import pytest
from generators import draw, problem_of
from scipy.optimize import linprog

from paretoda.core.problem import Guide, Move, Problem
from paretoda.schemes import ParetoReleased


def test_the_step_is_m_times_the_programme_plus_the_plain_source_and_alignment_gradients():
    for seed in range(100):
        case = draw("generic", 3, seed)
        gram, dots = case.problem.gram, case.problem.guide.dots
        answer = linprog(
            -gram.sum(axis=0),
            A_ub=-np.vstack([gram, dots]),
            b_ub=-np.array([0, 0, 0, min(dots.max(), 0)]),
            A_eq=np.ones((1, 3)),
            b_eq=[1],
        )
        weights = ParetoReleased()(case.problem)
        factors = 3 * weights.alpha
        if answer.status:
            assert weights.move is Move.FALLBACK
            assert factors == pytest.approx([4, 4, 3])
        else:
            assert factors == pytest.approx(3 * answer.x + [1, 1, 0], abs=1e-6)
            assert weights.move is Move.COMBINED


def test_the_target_is_found_by_its_role():
    case = draw("generic", 3, 0)
    problem = Problem(case.problem.gram, np.ones(3), case.problem.guide, ("target", "source", "alignment"))
    extra = ParetoReleased()(problem).alpha - ParetoReleased(extra=False)(problem).alpha
    assert extra == pytest.approx([0, 1 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        (("source", "alignment"), [1, 1]),
        (("source", "alignment", "target", "propagation"), [1, 1, 0, 0]),
        (("source", "propagation", "alignment"), [1, 0, 1]),
        (("one", "two"), [1, 0]),
    ],
)
def test_no_target_loss_gets_the_plain_gradient_and_the_alignment_always_does(roles, expected):
    size = len(roles)
    problem = Problem(np.eye(size), np.ones(size), Guide(np.ones(size), square=1.0), roles)
    extra = ParetoReleased()(problem).alpha - ParetoReleased(extra=False)(problem).alpha
    assert (size * extra).tolist() == pytest.approx(expected)


def test_the_programme_can_be_empty_and_that_is_counted():
    rows = np.array([[1.0, 0.0], [-0.9, 0.1]])
    problem = problem_of(rows, np.array([1.0, -20.0]), np.ones(2))
    weights = ParetoReleased(extra=False)(problem)
    assert weights.move is Move.FALLBACK
    assert weights.alpha.tolist() == [1.0, 1.0]


def test_the_loss_of_the_guide_does_not_matter():
    case = draw("generic", 3, 5)
    for loss in (-2.0, 0.0, 5.0):
        problem = Problem(case.problem.gram, np.ones(3), Guide(case.problem.guide.dots, loss=loss))
        assert ParetoReleased()(problem).alpha.tolist() == ParetoReleased()(case.problem).alpha.tolist()
