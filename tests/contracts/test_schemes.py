"""What every scheme must be: listed, configured by its fields, finite on every problem, repeatable, honest."""

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest
from generators import FAMILIES, draw, problem_of

import paretoda.schemes
from paretoda.core.problem import AheadScheme, GuideMissingError, Problem, StatefulScheme, reads_guide
from paretoda.schemes import MGDA, SCHEMES, WRAPPERS, make_scheme

ALL = dict(SCHEMES) | {f"{name} mgda": (lambda make=make: make(MGDA())) for name, make in WRAPPERS.items()}
NORMALISED = set(SCHEMES) - {"paretoda-released", "nash-mtl", "aligned-mtl", "uncertainty", "cagrad"}
"""Schemes that answer m equal gradients with that gradient, once scaled by m."""
ORDER_FREE = set(SCHEMES) - {"pcgrad", "gradvac", "paretoda-released", "gh++", "random"}
"""Schemes that treat all objectives alike (PCGrad and GradVac draw an order, the released script and GH know roles)."""


def test_every_file_is_in_the_table():
    folder = Path(inspect.getfile(paretoda.schemes)).parent
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    listed = {make.__module__.rsplit(".", 1)[1] for make in [*SCHEMES.values(), *WRAPPERS.values()]}
    assert files == listed


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'paretoda'"):
        make_scheme("pareto-da")
    with pytest.raises(ValueError, match="choose from linear"):
        make_scheme("zzz")


@pytest.mark.parametrize("name", ALL)
def test_it_is_a_frozen_dataclass_with_a_documented_reference(name):
    one, two = ALL[name](), ALL[name]()
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == repr(two)
    assert "_memory" not in repr(one)
    assert dataclasses.is_dataclass(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.anything = 1
    assert type(one).__doc__
    assert inspect.getmodule(type(one)).__doc__
    assert isinstance(reads_guide(one), bool)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_finite_and_the_same_again(name, family):
    for m in range(1, 9):
        for seed in range(3):
            problem = draw(family, m, seed).problem
            weights = ALL[name]()(problem)
            assert weights.alpha.shape == (m,)
            assert ALL[name]()(problem).alpha.tolist() == weights.alpha.tolist()


@pytest.mark.parametrize("name", ALL)
def test_one_objective_is_simply_lowered(name):
    problem = problem_of(np.array([[3.0, 4.0]]), np.array([1.0, 1.0]), np.array([2.0]))
    weights = ALL[name]()(problem)
    assert weights.alpha[0] > 0
    if name in NORMALISED:
        assert weights.alpha == pytest.approx([1.0])


@pytest.mark.parametrize("name", sorted(NORMALISED))
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_equal_gradients_with_equal_losses_give_that_gradient(name, m):
    gradient = np.array([[1.0, -2.0, 0.5]])
    problem = problem_of(np.repeat(gradient, m, axis=0), gradient[0], np.ones(m))
    direction = SCHEMES[name]()(problem).alpha @ np.repeat(gradient, m, axis=0)
    assert direction == pytest.approx(gradient[0], rel=1e-3)


@pytest.mark.parametrize("name", sorted(ORDER_FREE))
def test_the_order_of_the_objectives_does_not_matter(name):
    for seed in range(20):
        case = draw("generic", 4, seed)
        order = np.random.default_rng(seed).permutation(4)
        straight = SCHEMES[name]()(case.problem).alpha
        permuted = problem_of(case.rows[order], case.guide, case.problem.losses[order], case.problem.guide.loss)
        turned = SCHEMES[name]()(permuted).alpha
        assert straight @ case.rows == pytest.approx(turned @ case.rows[order], abs=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_a_float32_gram_at_scale_1e8_is_no_trouble(name):
    for seed in range(5):
        case = draw("conflicting", 3, seed)
        rows, guide = 1e4 * case.rows, 1e4 * case.guide
        gram, dots = (rows @ rows.T).astype(np.float32), (rows @ guide).astype(np.float32)
        problem = Problem(gram, np.ones(3), paretoda.core.problem.Guide(dots, loss=1.0))
        assert np.isfinite(ALL[name]()(problem).alpha).all()


@pytest.mark.parametrize("name", [name for name in SCHEMES if reads_guide(SCHEMES[name]())])
def test_a_guided_scheme_says_so_when_there_is_no_guide(name):
    with pytest.raises(GuideMissingError, match=f"'{name}' needs a guide"):
        SCHEMES[name]()(problem_of(np.eye(3), None, np.ones(3)))


@pytest.mark.parametrize("name", [name for name in SCHEMES if not reads_guide(SCHEMES[name]())])
def test_the_others_do_not_look_at_one(name):
    case = draw("generic", 3, 0)
    without = Problem(case.problem.gram, case.problem.losses)
    assert SCHEMES[name]()(without).alpha.tolist() == SCHEMES[name]()(case.problem).alpha.tolist()


@pytest.mark.parametrize("name", [name for name in ALL if isinstance(ALL[name](), StatefulScheme)])
def test_memory_is_plain_and_survives_a_restart(name):
    import json

    sequence = [draw("generic", 3, seed).problem for seed in range(70)]
    first = ALL[name]()
    for problem in sequence[:60]:
        first(problem)
    second = ALL[name]()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for problem in sequence[60:]:
        assert first(problem).alpha.tolist() == second(problem).alpha.tolist()


@pytest.mark.parametrize("name", [name for name in SCHEMES if isinstance(SCHEMES[name](), AheadScheme)])
def test_weights_known_ahead_are_the_weights(name):
    one, two = SCHEMES[name](), SCHEMES[name]()
    for seed in range(60):
        problem = draw("generic", 3, seed).problem
        ahead = one.ahead(problem.losses)
        assert ahead is not None
        assert ahead.alpha.tolist() == two(problem).alpha.tolist()
