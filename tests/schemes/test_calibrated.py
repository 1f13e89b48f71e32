"""Calibrated losses: a constant factor on any of them changes nothing, and the guarantees hold."""

import json

import numpy as np
import pytest
from generators import FAMILIES, draw
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.certificates import keeps_guarantee
from paretoda.core.problem import Guide, Move, Problem
from paretoda.schemes import MGDA, Averaged, Calibrated, Every, Linear, ParetoDA

ROLES = ("source", "alignment", "target")


def scaled(problem, factors):
    """The problem whose losses are multiplied by the factors."""
    guide = Guide(problem.guide.dots * factors, problem.guide.square, problem.guide.loss)
    return Problem(problem.gram * np.outer(factors, factors), problem.losses * factors, guide, problem.roles)


def problems(count, family="generic", m=3):
    return [draw(family, m, seed).problem for seed in range(count)]


@given(st.integers(0, 1000), st.lists(st.integers(-8, 8), min_size=3, max_size=3))
@settings(max_examples=50, deadline=None)
def test_a_factor_on_any_loss_changes_nothing(seed, exponents):
    factors = 10.0 ** np.array(exponents)
    plain, other = (Calibrated(Averaged(ParetoDA()), calls=4) for _ in range(2))
    for step in range(8):
        problem = draw("generic", 3, seed + step).problem
        here, there = plain(problem), other(scaled(problem, factors))
        assert there.alpha * factors == pytest.approx(here.alpha, rel=1e-7, abs=1e-9)
        assert there.units * factors == pytest.approx(here.units, rel=1e-9)


def test_without_calibration_it_does():
    problem, factors = draw("generic", 3, 0).problem, np.array([1.0, 100.0, 1.0])
    here, there = ParetoDA()(problem).alpha, ParetoDA()(scaled(problem, factors)).alpha * factors
    assert np.abs(here / here.sum() - there / there.sum()).max() > 0.1


def test_the_norm_is_the_root_mean_square_of_the_first_calls_and_then_stays():
    scheme = Calibrated(Linear(), calls=2)
    expected = [3.0, np.sqrt((9 + 1) / 2), np.sqrt(5)]
    for norm, wanted in zip([3.0, 1.0, 50.0], expected, strict=True):
        weights = scheme(Problem([[norm**2]], [1.0]))
        assert weights.units == pytest.approx([1 / wanted])
        assert weights.alpha == pytest.approx([1 / wanted])


def test_an_objective_that_begins_later_is_calibrated_from_then_on():
    scheme = Calibrated(Linear(), calls=2)
    for square, unit in ((0.0, 0.0), (0.0, 0.0), (16.0, 1 / 4), (0.0, 1 / np.sqrt(8)), (100.0, 1 / np.sqrt(8))):
        weights = scheme(Problem(np.diag([1.0, square]), np.ones(2)))
        assert weights.units == pytest.approx([1.0, unit])


def test_the_step_has_the_lengths_that_were_asked_for():
    problem = Problem(np.diag([4.0, 25.0]), np.ones(2))
    weights = Calibrated(Linear(), lengths=(1.0, 0.5))(problem)
    assert 2 * weights.alpha * np.array([2.0, 5.0]) == pytest.approx([1.0, 0.5])
    assert weights.move is Move.FIXED


def test_the_wrapped_scheme_sees_calibrated_losses_too():
    class Spy:
        guided = False

        def __call__(self, problem):
            self.problem = problem
            return MGDA()(problem)

    spy = Spy()
    Calibrated(spy)(Problem([[4.0, -2.0], [-2.0, 9.0]], [1.0, 6.0]))
    assert spy.problem.losses == pytest.approx([0.5, 2.0])
    assert spy.problem.gram == pytest.approx(np.array([[1, -1 / 3], [-1 / 3, 1]]))


@pytest.mark.parametrize("family", FAMILIES)
def test_either_the_guide_falls_or_no_objective_rises(family):
    for m in (2, 3, 4):
        scheme = Calibrated(Averaged(ParetoDA()), calls=10)
        for problem in problems(40, family, m):
            weights = scheme(problem)
            units = np.where(weights.units > 0, weights.units, 1.0)
            assert keeps_guarantee(scaled(problem, units), weights.alpha / units), (family, m)
            if family != "wild":  # there the tolerance, relative to the largest weight, has lost its meaning
                assert keeps_guarantee(problem, weights.alpha / (np.abs(weights.alpha).max() or 1.0)), (family, m)


def test_it_goes_on_where_it_was_saved_also_held_and_averaged():
    def make():
        return Every(Calibrated(Averaged(ParetoDA()), calls=4), every=2)

    def run(scheme, part):
        found = [scheme.ahead(problem.losses) or scheme(problem) for problem in part]
        return [(weights.alpha.tolist(), weights.units.tolist(), weights.move) for weights in found]

    scheme, other, sequence = make(), make(), problems(20)
    run(scheme, sequence[:5])
    other.load_state_dict(json.loads(json.dumps(scheme.state_dict())))
    assert run(scheme, sequence[5:]) == run(other, sequence[5:])


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="calls must be"):
        Calibrated(MGDA(), calls=0)
    with pytest.raises(ValueError, match="lengths must be positive"):
        Calibrated(MGDA(), lengths=(1.0, 0.0))
    with pytest.raises(ValueError, match="lengths has 2 numbers for 3"):
        Calibrated(MGDA(), lengths=(1.0, 1.0))(problems(1)[0])
    scheme = Calibrated(MGDA())
    scheme(problems(1)[0])
    with pytest.raises(ValueError, match="remembers 3 objectives"):
        scheme(problems(1, m=2)[0])
