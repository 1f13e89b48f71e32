"""Pareto MTL's sub-regions and phases."""

import numpy as np
import pytest
from generators import drawn, problem_of
from hypothesis import given, settings

from paretoda.core.min_norm import min_norm
from paretoda.core.problem import Move, Problem
from paretoda.schemes import PMTL
from paretoda.schemes.pmtl import preference_grid, violated_edges


def test_preference_vectors_are_unit_vectors_of_the_right_number():
    for m, divisions, number in ((2, 4, 5), (3, 4, 15), (4, 3, 20)):
        grid = preference_grid(m, divisions)
        assert grid.shape == (number, m)
        assert np.linalg.norm(grid, axis=1) == pytest.approx(np.ones(number))
        assert (grid >= -1e-12).all()


@pytest.mark.parametrize("m", [2, 3, 4])
def test_losses_along_a_preference_vector_are_inside_its_own_region_and_no_other(m):
    grid = preference_grid(m, 3)
    for index, vector in enumerate(grid):
        inside = [j for j in range(len(grid)) if not len(violated_edges(5.0 * vector, grid, j))]
        assert inside == [index]


@given(drawn(2, 5))
@settings(max_examples=200)
def test_inside_its_region_it_is_mgda(case):
    scheme = PMTL(divisions=1, index=0, preferences=(tuple(case.problem.losses),))
    weights = scheme(case.problem)
    assert weights.move is Move.DESCENT
    assert weights.alpha == pytest.approx(min_norm(case.problem.gram))


@given(drawn(2, 5, ("generic", "conflicting")))
@settings(max_examples=200)
def test_phase_one_lowers_every_violated_constraint_and_phase_two_the_losses_as_well(case):
    first, second = PMTL(reach=10), PMTL(reach=0)
    grid = preference_grid(case.problem.size, 4)
    index = int(np.argmax(grid.sum(axis=1)))
    edges = violated_edges(case.problem.losses, grid, index)
    if not len(edges):
        return
    one, two = first(case.problem).alpha, second(case.problem).alpha
    gram = case.problem.gram
    tolerance = 1e-9 * np.abs(gram).max()
    assert (edges @ gram @ one >= -tolerance).all()
    assert (edges @ gram @ two >= -tolerance).all()
    assert (gram @ two >= -tolerance).all()
    assert np.abs(one).sum() == pytest.approx(1.0)


def test_phase_one_ends_at_the_first_step_inside_or_after_its_last():
    gram, outer, inner = np.eye(2), np.array([1.0, 0.05]), np.array([1.0, 1.0])
    scheme = PMTL(reach=2)
    negative = scheme(Problem(gram, outer)).alpha.min() < 0
    assert negative, "phase one may raise a loss to reach the region"
    scheme(Problem(gram, inner))
    assert scheme(Problem(gram, outer)).alpha.min() >= -1e-12, "phase two does not"
    late = PMTL(reach=2)
    for _ in range(2):
        late(Problem(gram, outer))
    assert late(Problem(gram, outer)).alpha.min() >= -1e-12


def test_memory_survives_a_restart_and_bad_settings_are_refused():
    scheme = PMTL(reach=3)
    problem = problem_of(np.eye(2), None, np.array([1.0, 0.05]))
    scheme(problem)
    other = PMTL(reach=3)
    other.load_state_dict(scheme.state_dict())
    assert [scheme(problem).alpha.tolist() for _ in range(4)] == [other(problem).alpha.tolist() for _ in range(4)]
    with pytest.raises(ValueError, match="index is 99"):
        PMTL(index=99)(problem)
    with pytest.raises(ValueError, match="2 numbers each"):
        PMTL(preferences=((1.0, 1.0, 1.0),))(problem)
    with pytest.raises(ValueError, match="divisions >= 1"):
        PMTL(divisions=0)
