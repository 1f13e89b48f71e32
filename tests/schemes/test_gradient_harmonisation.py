import numpy as np
import pytest
from generators import drawn, example_gram, problem_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.problem import Problem
from paretoda.schemes.gradient_harmonisation import GradientHarmonisation, harmonise_by_angle
from paretoda.schemes.pcgrad import PCGrad

GH = GradientHarmonisation(plus=False)


@given(drawn(smallest=2, largest=2))
@settings(max_examples=100, deadline=None)
def test_gh_of_two_is_pcgrad(case):
    assert GH(case.problem).alpha == pytest.approx(PCGrad()(case.problem).alpha, rel=1e-9)


@given(drawn(smallest=2, largest=2, families=("generic", "conflicting", "wild")))
@settings(max_examples=100, deadline=None)
def test_along_gh_neither_of_the_two_rises(case):
    slopes = case.problem.gram @ GH(case.problem).alpha
    assert (slopes >= -1e-9 * np.abs(case.problem.gram).max(axis=1)).all()


@given(drawn())
@settings(max_examples=100, deadline=None)
def test_without_conflict_it_is_the_plain_sum(case):
    agreeing = Problem(np.abs(case.problem.gram), case.problem.losses)
    for scheme in (GH, GradientHarmonisation()):
        assert (scheme(agreeing).alpha == 1 / agreeing.size).all()


@given(st.floats(90.1, 179.9), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_gh_plus_plus_has_the_weights_of_the_paper(angle, share):
    cosine = np.cos(np.radians(angle))
    source, alignment = harmonise_by_angle(np.array([[1.0, 2 * cosine], [2 * cosine, 4.0]]), share)
    beta = share * (angle - 90)
    assert alignment == pytest.approx(1 + 2 * np.sin(np.radians(beta / 2)))
    assert source == pytest.approx(1 + 2 * np.sin(np.radians((beta + 90 - angle) / 2)))
    assert 1 - np.sqrt(2) <= source <= 1 <= alignment


def test_the_weight_of_the_source_can_become_negative():
    opposite = np.array([[1.0, -0.99], [-0.99, 1.0]])
    assert harmonise_by_angle(opposite, 0.0)[0] < 0
    assert harmonise_by_angle(opposite, 0.5)[0] > 0


def test_source_and_alignment_are_found_by_their_roles_and_all_others_keep_the_weight_1():
    rows = np.array([[0.0, 0.0, 1.0], [-1.0, 1.0, -9.0], [1.0, 0.0, 0.0]])
    problem = problem_of(rows, None, np.ones(3))
    roles = Problem(problem.gram, problem.losses, None, ("target", "alignment", "source"))
    expected = 1 + np.array([1 / 83, 1.0])  # |g|² is 83 and 1, their product -1
    assert 3 * GH(roles).alpha == pytest.approx([1, *expected])
    first_two = 3 * GH(problem).alpha
    assert first_two[2] == 1
    assert first_two[0] > 1


def test_the_example_of_the_specification():
    assert 2 * GH(Problem(example_gram(), [1.0, 1.0])).alpha == pytest.approx([2.0, 1.5])
    assert GH(Problem([[2.0]], [1.0])).alpha.tolist() == [1.0]


def test_a_share_out_of_range_is_refused():
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="share"):
            GradientHarmonisation(share=wrong)
