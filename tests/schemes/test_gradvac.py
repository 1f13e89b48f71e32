import numpy as np
import pytest
from generators import draw, drawn
from hypothesis import given, settings

from paretoda.core.problem import Problem
from paretoda.schemes.gradvac import GradVac, gradvac
from paretoda.schemes.pcgrad import PCGrad


def turned(rows, goals, orders):
    """The paper's algorithm on the gradients themselves."""
    total = np.zeros(rows.shape[1])
    for own, order in enumerate(orders):
        gradient = rows[own].copy()
        for other in order:
            lengths = np.linalg.norm(gradient), np.linalg.norm(rows[other])
            cosine, goal = gradient @ rows[other] / lengths[0] / lengths[1], goals[own, other]
            if other != own and cosine < goal:
                up = goal * np.sqrt(1 - cosine**2) - cosine * np.sqrt(1 - goal**2)
                gradient += lengths[0] * up / (lengths[1] * np.sqrt(1 - goal**2)) * rows[other]
        total += gradient
    return total


@pytest.mark.parametrize("seed", range(10))
def test_coefficients_over_the_gram_are_the_turned_gradients(seed):
    rng = np.random.default_rng(seed)
    rows, goals = rng.normal(size=(4, 10)), rng.uniform(-0.9, 0.9, size=(4, 4))
    orders = [rng.permutation(4).tolist() for _ in range(4)]
    weights, _ = gradvac(rows @ rows.T, goals, orders)
    assert weights @ rows == pytest.approx(turned(rows, goals, orders), rel=1e-9)


@given(drawn())
@settings(max_examples=100, deadline=None)
def test_the_first_step_is_that_of_pcgrad(case):
    assert GradVac(seed=3)(case.problem).alpha == pytest.approx(PCGrad(seed=3)(case.problem).alpha, rel=1e-6)


@given(drawn(smallest=2, largest=2, families=("generic", "conflicting")))
@settings(max_examples=100, deadline=None)
def test_a_turned_gradient_has_the_wanted_cosine(case):
    rows, goal = case.rows, 0.3
    apart = rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1])
    weights, met = gradvac(case.problem.gram, np.full((2, 2), goal), [[1], []])
    first = weights @ rows - rows[1]
    cosine = first @ rows[1] / np.linalg.norm(first) / np.linalg.norm(rows[1])
    assert met[0, 1] == pytest.approx(apart, abs=1e-9)
    if -1 + 1e-6 < apart < 1 - 1e-6:
        assert cosine == pytest.approx(max(goal, apart), abs=1e-6)


def test_the_usual_cosines_are_running_averages():
    scheme = GradVac(decay=0.25)
    for _ in range(2):
        scheme(Problem([[1.0, 0.8], [0.8, 4.0]], [1.0, 1.0]))  # cosine 0.4
    cosines = np.array(scheme.state_dict()["cosines"])
    assert cosines == pytest.approx((np.ones((2, 2)) - np.eye(2)) * 0.4 * (1 - 0.75**2))


def test_weights_stay_finite_over_many_steps_of_any_kind():
    for family in ("collinear", "zeros", "wild", "low-rank"):
        scheme = GradVac(decay=0.5)
        for seed in range(50):
            assert np.isfinite(scheme(draw(family, 4, seed).problem).alpha).all()


def test_scaling_a_loss_scales_nothing_but_its_share_of_the_usual_cosines():
    one, two, by = GradVac(decay=0.3), GradVac(decay=0.3), np.array([1.0, 1e4, 1e-3])
    for seed in range(10):
        rows = draw("generic", 3, seed).rows
        for scheme, used in ((one, rows), (two, rows * by[:, None])):
            scheme(Problem(used @ used.T, np.ones(3)))
    assert np.array(one.state_dict()["cosines"]) == pytest.approx(np.array(two.state_dict()["cosines"]), abs=1e-9)


def test_settings_out_of_range_and_another_number_of_objectives_are_refused():
    for wrong in ({"decay": -0.1}, {"decay": 1.1}, {"seed": -1}):
        with pytest.raises(ValueError, match=r"decay|seed"):
            GradVac(**wrong)
    scheme = GradVac()
    scheme(draw("generic", 3, 0).problem)
    with pytest.raises(ValueError, match="remembers 3 objectives"):
        scheme(draw("generic", 2, 0).problem)
