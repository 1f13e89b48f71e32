import numpy as np
import pytest
from generators import draw, drawn, example_gram
from hypothesis import given, settings

from paretoda.core.problem import Move, Problem
from paretoda.schemes.imtl_g import IMTLG, equal_projection


def test_the_examples_of_the_specification():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    alpha = IMTLG()(Problem(example_gram(), [1.0, 1.0])).alpha
    assert alpha == pytest.approx([0.585786, 0.414214], abs=1e-6)
    assert rows @ (alpha @ rows) / np.linalg.norm(rows, axis=1) == pytest.approx([0.171573] * 2, abs=1e-6)
    assert IMTLG()(Problem(np.diag([1.0, 4.0]), [1.0, 1.0])).alpha == pytest.approx([2 / 3, 1 / 3])


@given(drawn(largest=6, families=("generic", "wild", "float32")))
@settings(max_examples=100, deadline=None)
def test_projections_on_unit_gradients_are_equal_and_positive(case):
    if np.linalg.matrix_rank(case.rows / np.linalg.norm(case.rows, axis=1, keepdims=True), tol=1e-2) < len(case.rows):
        return
    weights = IMTLG()(case.problem)
    norms = np.linalg.norm(case.rows, axis=1)
    unit = case.rows / norms[:, None]
    projections = unit @ (weights.alpha * norms @ unit)
    assert projections == pytest.approx(np.full_like(norms, projections[0]), rel=1e-6)
    assert projections[0] > 0
    if weights.move is Move.COMBINED:
        assert weights.alpha.sum() == pytest.approx(1.0)


@given(drawn())
@settings(max_examples=100, deadline=None)
def test_weights_are_finite_and_bounded(case):
    assert np.abs(IMTLG()(case.problem).alpha).sum() <= 100 * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e8])
@pytest.mark.parametrize("family", ["generic", "low-rank"])
def test_scaling_one_loss_leaves_the_direction(scale, family):
    rows = draw(family, 4, 5).rows
    scaled = rows * np.array([[1.0], [scale], [1.0], [1.0]])
    before, after = equal_projection(rows @ rows.T) @ rows, equal_projection(scaled @ scaled.T) @ scaled
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6 * np.abs(before).max())


def test_renumbered_objectives_get_renumbered_weights():
    gram, turn = draw("conflicting", 4, 1).problem.gram, [2, 0, 3, 1]
    assert equal_projection(gram[np.ix_(turn, turn)]) == pytest.approx(equal_projection(gram)[turn])


def test_a_negative_sum_does_not_turn_the_step_uphill():
    gram = np.array([[0.01, 0.09], [0.09, 1.0]])  # cosine 0.9, so the weights are in proportion to 1 / norms: positive
    assert equal_projection(gram).sum() > 0
    for seed in range(200):
        problem = draw("wild", 3, seed).problem
        weights, found = equal_projection(problem.gram), IMTLG()(problem)
        if weights.sum() < 0:
            break
    assert weights.sum() < 0
    assert found.move is Move.FALLBACK
    assert np.abs(found.alpha).sum() == pytest.approx(1.0)
    assert (problem.gram @ found.alpha > 0).all()


def test_opposite_gradients_and_zero_gradients_fall_back():
    for gram in ([[1.0, -1.0], [-1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]):
        weights = IMTLG()(Problem(gram, [1.0, 1.0]))
        assert (weights.alpha == 0.5).all()
        assert weights.move is Move.FALLBACK
    assert IMTLG()(Problem(np.diag([1.0, 0.0, 4.0]), np.ones(3))).alpha == pytest.approx([2 / 3, 0, 1 / 3])


def test_identical_gradients_are_returned():
    assert IMTLG()(Problem(np.ones((3, 3)), np.ones(3))).alpha == pytest.approx([1 / 3] * 3)
