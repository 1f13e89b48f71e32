"""Our default: nothing rises, and the plain sum is bent as little as possible."""

from collections import Counter

import numpy as np
import pytest
from generators import FAMILIES, draw, problem_of

from paretoda.core.certificates import guide_slope, is_common_descent
from paretoda.core.problem import Move, Problem
from paretoda.schemes import ParetoDA


@pytest.mark.parametrize("scheme", [ParetoDA(), ParetoDA(lean=0), ParetoDA(normalise=True)], ids=str)
def test_no_objective_rises_and_a_guide_that_is_obeyed_does_not_either(scheme):
    moves = Counter()
    for family in FAMILIES:
        for m in range(1, 9):
            for seed in range(60):
                problem = draw(family, m, seed).problem
                weights = scheme(problem)
                moves[weights.move] += 1
                assert is_common_descent(problem, weights.alpha), (family, m, seed)
                if weights.move is Move.GUIDED:
                    assert guide_slope(problem, weights.alpha) >= -1e-9
    assert moves[Move.GUIDED] > 1000
    assert moves[Move.DESCENT] > 100
    assert moves[Move.SAFETY_NET] == 0


def test_without_conflict_it_is_the_plain_sum():
    weights = ParetoDA(lean=0)(problem_of(np.eye(3), np.ones(3), np.ones(3)))
    assert weights.alpha == pytest.approx([1 / 3] * 3)
    assert weights.move is Move.GUIDED


def test_a_conflict_bends_the_sum_to_the_nearest_direction_along_which_nothing_rises():
    rows = np.array([[1.0, 0.0], [-3.0, 1.0]])  # the mean is (-1, .5): the first objective would rise
    direction = ParetoDA(lean=0)(problem_of(rows, np.array([0.0, 1.0]), np.ones(2))).alpha @ rows
    assert direction == pytest.approx([0.0, 0.5])


def test_the_guide_turns_the_step_and_starves_no_objective():
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    weights = ParetoDA(lean=0)(problem_of(rows, np.array([-1.0, 3.0]), np.ones(2)))
    assert weights.alpha @ rows == pytest.approx([0.5, 0.5])
    turned = ParetoDA(lean=0)(problem_of(rows, np.array([-3.0, 1.0]), np.ones(2)))
    assert turned.alpha @ rows == pytest.approx([0.2, 0.6])  # (.5, .5) projected onto -3x + y >= 0
    assert (turned.alpha > 0).all()


def test_a_guide_against_every_direction_loses_its_veto():
    weights = ParetoDA(lean=0)(problem_of(np.eye(2), -np.ones(2), np.ones(2)))
    assert weights.move is Move.DESCENT
    assert weights.alpha == pytest.approx([0.5, 0.5])


def test_a_step_of_rounding_errors_is_not_called_guided():
    dropped = 0
    for seed in range(400):
        case = draw("generic", 3, seed)
        factors = 10.0 ** np.random.default_rng((seed, 0)).integers(-3, 4, size=(3, 1))
        problem = problem_of(factors * case.rows, case.guide, np.ones(3))
        weights, wanted = ParetoDA()(problem), ParetoDA().wanted(problem)
        lengths = [np.sqrt(max(alpha @ problem.gram @ alpha, 0.0)) for alpha in (weights.alpha, wanted)]
        assert weights.move is Move.DESCENT or lengths[0] > 1e-6 * lengths[1], seed
        dropped += weights.move is Move.DESCENT
    assert 0 < dropped < 200


def test_the_wanted_weights_lean_to_what_the_guide_agrees_with():
    rows, guide = np.diag([2.0, 5.0]), np.array([3.0, 4.0])  # cosines .6 and .8
    weights = ParetoDA(lean=2.0)(problem_of(rows, guide, np.ones(2)))
    assert weights.alpha == pytest.approx(np.exp([1.2, 1.6]) / np.exp([1.2, 1.6]).sum())


def test_normalised_gradients_are_wanted_equally_long():
    weights = ParetoDA(lean=0, normalise=True)(problem_of(np.diag([2.0, 8.0]), np.ones(2), np.ones(2)))
    assert weights.alpha == pytest.approx([0.8, 0.2])
    silent = ParetoDA(lean=0, normalise=True)(problem_of(np.diag([2.0, 0.0]), np.ones(2), np.ones(2)))
    assert np.isfinite(silent.alpha).all()


def test_a_prior_is_the_wanted_ratio_of_the_weights():
    weights = ParetoDA(lean=0, prior=(1, 0.3))(problem_of(np.eye(2), np.ones(2), np.ones(2)))
    assert weights.alpha == pytest.approx([1 / 1.3, 0.3 / 1.3])
    with pytest.raises(ValueError, match="prior has 3 numbers for 2 objectives"):
        ParetoDA(prior=(1, 1, 1))(problem_of(np.eye(2), np.ones(2), np.ones(2)))
    for wrong in ({"lean": -1}, {"lean": float("nan")}, {"prior": (1, 0)}):
        with pytest.raises(ValueError, match=r"lean must be|prior must be"):
            ParetoDA(**wrong)


def test_by_default_alignment_and_target_loss_are_wanted_at_three_tenths():
    problem = problem_of(np.eye(4), np.ones(4), np.ones(4))
    named = Problem(problem.gram, problem.losses, problem.guide, ("source", "alignment", "target", "propagation"))
    assert ParetoDA(lean=0).wanted(named) == pytest.approx(np.array([1, 0.3, 0.3, 1]) / 2.6)
    assert ParetoDA(lean=0).wanted(problem) == pytest.approx([0.25] * 4)
    assert ParetoDA(lean=0, prior=(1, 1, 1, 1)).wanted(named) == pytest.approx([0.25] * 4)
