import json
from itertools import permutations

import numpy as np
import pytest
from generators import draw, drawn, example_gram
from hypothesis import given, settings

from paretoda.core.problem import Problem
from paretoda.schemes.pcgrad import PCGrad, pcgrad


def projected(rows, orders):
    """The paper's algorithm on the gradients themselves."""
    total = np.zeros(rows.shape[1])
    for own, order in enumerate(orders):
        gradient = rows[own].copy()
        for other in order:
            product = gradient @ rows[other]
            if other != own and product < 0:
                gradient -= product / (rows[other] @ rows[other]) * rows[other]
        total += gradient
    return total


def test_the_example_of_the_specification():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    direction = 2 * PCGrad()(Problem(example_gram(), [1.0, 1.0])).alpha @ rows
    assert direction == pytest.approx([0.5, 1.5])


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_over_the_gram_are_projections_of_the_gradients(seed):
    problem = draw("conflicting", 3, seed)
    for order in permutations(range(3)):
        weights = pcgrad(problem.problem.gram, [order] * 3)
        assert weights @ problem.rows == pytest.approx(projected(problem.rows, [order] * 3), abs=1e-9)


@given(drawn())
@settings(max_examples=50, deadline=None)
def test_without_conflict_it_is_the_plain_sum(case):
    agreeing = Problem(np.abs(case.problem.gram), case.problem.losses)
    assert (PCGrad()(agreeing).alpha == 1 / agreeing.size).all()


@given(drawn())
@settings(max_examples=100, deadline=None)
def test_weights_are_finite_and_at_least_the_plain_sum(case):
    alpha = PCGrad()(case.problem).alpha
    assert np.isfinite(alpha).all()
    assert (alpha >= 1 / len(alpha)).all()


def test_renumbered_objectives_meet_in_renumbered_orders():
    gram, turn = draw("conflicting", 4, 1).problem.gram, np.array([2, 0, 3, 1])
    orders = [[3, 1, 2, 0], [0, 2, 3, 1], [1, 0, 3, 2], [2, 1, 0, 3]]
    place = np.argsort(turn)
    turned = [[int(place[j]) for j in orders[i]] for i in turn]
    assert pcgrad(gram[np.ix_(turn, turn)], turned) == pytest.approx(pcgrad(gram, orders)[turn])


def test_orders_change_from_step_to_step_and_the_seed_decides_them():
    problem = draw("conflicting", 5, 0).problem
    first, again, other = PCGrad(), PCGrad(), PCGrad(seed=1)
    run = [first(problem).alpha.tolist() for _ in range(5)]
    assert run == [again(problem).alpha.tolist() for _ in range(5)]
    assert run != [other(problem).alpha.tolist() for _ in range(5)]
    assert len({tuple(alpha) for alpha in run}) > 1


def test_a_restart_goes_on_with_the_same_orders():
    problem = draw("conflicting", 5, 0).problem
    scheme, fresh = PCGrad(seed=3), PCGrad(seed=3)
    for _ in range(3):
        scheme(problem)
    fresh.load_state_dict(json.loads(json.dumps(scheme.state_dict())))
    for _ in range(3):
        assert scheme(problem).alpha.tolist() == fresh(problem).alpha.tolist()


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed"):
        PCGrad(seed=-1)
