import numpy as np
import pytest
from generators import draw, drawn, example_gram
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.core.problem import Move, Problem
from paretoda.schemes.aligned_mtl import AlignedMTL, alignment


def test_the_example_of_the_specification():
    alpha = AlignedMTL()(Problem(example_gram(), [1.0, 1.0])).alpha
    assert alpha == pytest.approx([0.552786, 0.414590], abs=1e-6)


@given(st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_aligned_gradients_are_orthogonal_with_the_smallest_eigenvalue_as_square(m, seed):
    rows = np.random.default_rng(seed).normal(size=(m, m + 3))
    gram = rows @ rows.T
    aligned = alignment(gram).T @ rows
    smallest = np.linalg.eigvalsh(gram)[0]
    assert aligned @ aligned.T == pytest.approx(smallest * np.eye(m), abs=1e-8 * np.abs(gram).max())


def test_the_example_s_aligned_square_is_its_smallest_eigenvalue():
    balanced = alignment(example_gram())
    assert balanced @ example_gram() @ balanced == pytest.approx(0.381966 * np.eye(2), abs=1e-6)


@pytest.mark.parametrize(("scale", "square"), [("min", 1.0), ("median", 4.0), ("rmse", 35 / 4)])
def test_the_common_length_is_the_chosen_eigenvalue(scale, square):
    gram = np.diag([1.0, 4.0, 10.0, 20.0])
    assert np.diagonal(alignment(gram, scale) @ gram @ alignment(gram, scale)) == pytest.approx([square] * 4)


@given(drawn())
@settings(max_examples=100, deadline=None)
def test_the_step_is_no_longer_than_the_mean_gradient(case):
    alpha = AlignedMTL()(case.problem).alpha
    assert np.isfinite(alpha).all()
    longest = np.linalg.norm(case.rows, axis=1).max()
    assert np.linalg.norm(alpha @ case.rows) <= np.linalg.norm(case.rows.mean(axis=0)) + 1e-5 * longest


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_all_losses_does_not_matter(scale):
    gram = draw("generic", 3, 0).problem.gram
    changed = AlignedMTL()(Problem(gram * scale**2, np.ones(3))).alpha
    assert changed == pytest.approx(AlignedMTL()(Problem(gram, np.ones(3))).alpha, rel=1e-9)


def test_renumbered_objectives_get_renumbered_weights():
    gram, turn = draw("generic", 4, 1).problem.gram, [2, 0, 3, 1]
    changed = AlignedMTL()(Problem(gram[np.ix_(turn, turn)], np.ones(4))).alpha
    assert changed == pytest.approx(AlignedMTL()(Problem(gram, np.ones(4))).alpha[turn])


def test_identical_gradients_are_returned_and_zero_ones_give_equal_weights():
    assert AlignedMTL()(Problem(np.ones((3, 3)), np.ones(3))).alpha == pytest.approx([1 / 3] * 3)
    weights = AlignedMTL()(Problem(np.zeros((3, 3)), np.ones(3)))
    assert (weights.alpha == 1 / 3).all()
    assert weights.move is Move.FALLBACK


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match="min, median, rmse"):
        AlignedMTL("max")
