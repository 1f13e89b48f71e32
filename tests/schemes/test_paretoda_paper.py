"""Eq. 6, its mended theorem, the counter-examples to the printed ones, and their limits."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy
from generators import FAMILIES, draw, drawn, problem_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.certificates import guide_slope, is_common_descent, is_critical, is_stationary, keeps_guarantee
from paretoda.core.linear_program import TOLERANCE, maximise
from paretoda.core.problem import Guide, Move, Problem
from paretoda.schemes import MGDA, ParetoDA, ParetoPaper
from paretoda.schemes.paretoda_paper import guided_bounds


def test_our_theorem_holds_in_twelve_thousand_problems():
    """Either L_val falls, or no objective rises: to first order, to 1e-9 relative, for every family and size."""
    scheme, moves = ParetoPaper(), Counter()
    for family in FAMILIES:
        for m in range(1, 9):
            for seed in range(200):
                problem = draw(family, m, seed).problem
                weights = scheme(problem)
                assert keeps_guarantee(problem, weights.alpha), (family, m, seed)
                assert weights.alpha.sum() == pytest.approx(1.0)
                assert (weights.alpha >= 0).all()
                moves[weights.move] += 1
    assert sum(moves.values()) == 12_800
    assert moves[Move.GUIDED] > 1000
    assert moves[Move.DESCENT] > 1000
    old = tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17)  # its solver gives up on one of them
    assert moves[Move.SAFETY_NET] == int(old)


@given(drawn(), st.integers(0, 2**32 - 1))
@settings(max_examples=300)
def test_our_theorem_holds_in_the_metric_of_the_step(case, seed):
    """With learning-rate multipliers λ the step is -Λd: the losses change by the Gram in that metric."""
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-2, 0, size=case.rows.shape[1])
    root = np.sqrt(rates)
    problem = problem_of(case.rows * root, case.guide * root, case.problem.losses, case.problem.guide.loss)
    alpha = ParetoPaper()(problem).alpha
    step = rates * (alpha @ case.rows)
    scales = np.abs(problem.gram).max(axis=1)
    falls = case.guide @ step > 0
    assert falls or (case.rows @ step >= -2 * TOLERANCE * scales).all()


@given(drawn())
@settings(max_examples=300)
def test_below_the_threshold_no_objective_rises(case):
    problem = Problem(case.problem.gram, case.problem.losses, Guide(case.problem.guide.dots, loss=1e-3))
    weights = ParetoPaper()(problem)
    assert weights.move is Move.DESCENT
    assert is_common_descent(problem, weights.alpha)


@pytest.mark.parametrize("make", [ParetoPaper, ParetoDA, MGDA])
def test_neither_of_the_specifications_two_conflicting_gradients_rises(make):
    rows = np.array([[1.0, 0.0], [-0.5, 1.0]])
    for loss, turn in itertools.product((1e-3, 1.0), np.linspace(0, 2 * np.pi, 25)):
        problem = problem_of(rows, np.array([np.cos(turn), np.sin(turn)]), np.ones(2), loss)
        weights = make()(problem)
        assert (weights.alpha >= 0).all()
        assert make is ParetoDA or weights.alpha.sum() == pytest.approx(1), "ours is no mean: it projects"
        if make is not ParetoPaper or weights.move is Move.DESCENT:
            assert (problem.gram @ weights.alpha >= -1e-9).all()
        else:
            assert guide_slope(problem, weights.alpha) > 0


def test_the_bounds_of_equation_6():
    assert guided_bounds(np.array([2.0, 1.0, -3.0])).tolist() == [0.0, -np.inf, -3.0]
    assert guided_bounds(np.array([2.0, 2.0, 0.0])).tolist() == [0.0, 0.0, 0.0]
    assert guided_bounds(np.array([-1.0, 0.0])).tolist() == [0.0, 0.0]


@given(drawn(2, 6))
@settings(max_examples=300)
def test_the_objective_that_agrees_most_with_the_guide_does_not_rise(case):
    weights = ParetoPaper()(case.problem)
    best = int(np.argmax(case.problem.guide.dots))
    row = case.problem.gram[best]
    assert row @ weights.alpha >= -2 * TOLERANCE * np.abs(row).max()


COUNTER_EXAMPLES = [
    (np.array([[-10.0, 1.0], [1.0, 0.0]]), np.array([-1.0, -8.0]), [2 / 11, 9 / 11], -5 / 11),
    (np.array([[1, 0], [-1, 0.1], [-1, 0.1]]), np.array([0.01, -0.1]), [0.512438, 0.487562, 0], -0.004627),
]


@pytest.mark.parametrize(("rows", "guide", "printed", "gamma"), COUNTER_EXAMPLES)
def test_theorem_1_of_the_paper_is_false_and_we_do_not_follow_it(rows, guide, printed, gamma):
    problem = problem_of(rows, guide, np.ones(len(rows)))
    dots = problem.guide.dots
    assert (dots > 0).any()
    literal = maximise(dots, problem.gram, guided_bounds(dots))
    if len(rows) == 2:  # with two equal gradients the weight may stand at either
        assert literal == pytest.approx(printed, abs=1e-6)
    assert dots @ literal == pytest.approx(gamma, abs=1e-6)
    assert not is_common_descent(problem, literal), "the optimum is not positive, and yet an objective rises"
    ours = ParetoPaper()(problem)
    assert ours.move is Move.DESCENT
    assert is_common_descent(problem, ours.alpha)


@given(drawn(1, 8))
@settings(max_examples=300)
def test_theorem_2_holds_for_stationary_in_place_of_critical(case):
    """Its first half: where 0 is not in the hull of the gradients, no weights on the simplex give d = 0."""
    problem = case.problem
    if is_stationary(problem.gram, tolerance=1e-6):
        return
    alpha = ParetoPaper()(problem).alpha
    assert alpha @ problem.gram @ alpha > 0


@pytest.mark.parametrize(
    ("rows", "guide"),
    [
        ([[0.0, 0.0], [1.0, 0.0]], [-1.0, 0.0]),  # a zero gradient takes all
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [0.0, -1.0]),  # two cancel, the third is left aside
    ],
)
def test_theorem_2_has_a_limit_the_step_can_stop_at_a_point_that_is_not_critical(rows, guide):
    """The paper's proof assumes that all weights are positive; they need not be."""
    problem = problem_of(np.array(rows), np.array(guide), np.ones(len(rows)))
    assert not is_critical(problem.gram)
    assert ParetoPaper()(problem).alpha @ np.array(rows) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_theorem_2_at_a_critical_point_the_guide_moves_on():
    """Its second half: 0 is in the hull, g_3·g_v > 0, L_val > 0: the step is not zero."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [-0.5, 0.0]])
    problem = problem_of(rows, np.array([-1.0, 0.0]), np.ones(3))
    assert is_critical(problem.gram)
    alpha = ParetoPaper()(problem).alpha
    assert guide_slope(problem, alpha) > 0


def test_where_the_guide_agrees_with_all_only_the_best_objective_is_used():
    rows = np.array([[1.0, 0.0], [1.0, 0.5], [2.0, 0.0]])
    weights = ParetoPaper()(problem_of(rows, np.array([1.0, 0.0]), np.ones(3)))
    assert weights.alpha.tolist() == [0.0, 0.0, 1.0]
    assert weights.move is Move.GUIDED


def test_with_unit_gradients_the_scale_of_a_loss_does_not_turn_the_direction():
    rng = np.random.default_rng(3)
    for _ in range(50):
        rows, guide = rng.normal(size=(3, 5)), rng.normal(size=5)
        scale = 10.0 ** rng.uniform(-3, 3, size=(3, 1))
        one = ParetoPaper(normalise="l2")(problem_of(rows, guide, np.ones(3))).alpha @ rows
        two = ParetoPaper(normalise="l2")(problem_of(scale * rows, guide, np.ones(3))).alpha @ (scale * rows)
        assert one / np.linalg.norm(one) == pytest.approx(two / np.linalg.norm(two), abs=1e-6)
        problem = problem_of(rows, guide, np.ones(3))
        assert keeps_guarantee(problem, ParetoPaper(normalise="l2")(problem).alpha)


def test_the_solution_does_not_change_when_all_gradients_and_the_guide_are_scaled_by_one_factor():
    for seed in range(50):
        case = draw("generic", 3, seed)
        scaled = problem_of(1e4 * case.rows, 1e4 * case.guide, np.ones(3))
        again = problem_of(case.rows, case.guide, np.ones(3))
        assert ParetoPaper()(scaled).alpha == pytest.approx(ParetoPaper()(again).alpha, abs=1e-9)
