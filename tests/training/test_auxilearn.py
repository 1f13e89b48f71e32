"""AuxiLearn against minima in closed form: the hyper-gradient, its truncation, its sign, and what is learned."""

import json

import numpy as np
import pytest
import torch
from training.networks import network_batch, network_step
from training.points import Bowl, filled, point_batch, point_step

from paretoda.core.problem import Move
from paretoda.gradients import NonFiniteError
from paretoda.gradients.hypergradient import hypergradient
from paretoda.objectives import InformationGuide
from paretoda.schemes import Linear
from paretoda.training.strategies import AuxiLearn
from paretoda.training.strategies.auxilearn import linear_combination, monotone_combination

SOURCE, HELPFUL, HARMFUL, WANTED = [0.0, 0.0], [2.0, 0.0], [-2.0, 1.0], [1.5, 0.2]


def quadratic(seed, size=4, learned=3):
    """L_train = ½ θᵀAθ - φᵀBθ, so θ* = A⁻¹Bᵀφ; L_A = ½ |θ - c|²; at θ*."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    a = torch.tensor(turn @ np.diag(rng.uniform(1, 3, size)) @ turn.T)
    b, c = torch.tensor(rng.normal(size=(learned, size))), torch.tensor(rng.normal(size=size))
    phi = torch.tensor(rng.normal(size=learned), requires_grad=True)
    theta = torch.linalg.solve(a, b.T @ phi.detach()).requires_grad_()
    train = 0.5 * theta @ a @ theta - phi @ b @ theta
    return a, b, phi, theta, train, 0.5 * (theta - c).square().sum()


@pytest.mark.parametrize("seed", range(5))
def test_with_many_terms_it_is_exact(seed):
    """dL_A/dφ = B A⁻¹ ∇L_A: a wrong sign, a missing η or a detached Hessian would all show."""
    a, b, phi, theta, train, auxiliary = quadratic(seed)
    found = hypergradient(train, auxiliary, [theta], phi, rate=1 / 3, terms=60)
    slope = torch.autograd.grad(auxiliary, theta)[0]
    torch.testing.assert_close(found, b @ torch.linalg.solve(a, slope), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("terms", [0, 1, 3])
def test_with_few_terms_it_is_the_truncated_series(terms):
    a, b, phi, theta, train, auxiliary = quadratic(7)
    slope = torch.autograd.grad(auxiliary, theta, retain_graph=True)[0]
    once = torch.eye(4).double() - 0.05 * a
    inverse = 0.05 * sum(torch.linalg.matrix_power(once, j) for j in range(terms + 1))
    found = hypergradient(train, auxiliary, [theta], phi, rate=0.05, terms=terms)
    torch.testing.assert_close(found, b @ inverse @ slope)


def test_it_is_how_the_auxiliary_loss_of_the_minimum_changes():
    """Central differences over loss weights; the minimum of a weighted sum of bowls is known."""
    bowls = [Bowl(SOURCE, [[2.0, 0.3], [0.3, 1.0]]), Bowl(HELPFUL), Bowl(HARMFUL, [[1.0, 0.0], [0.0, 3.0]])]
    wanted = torch.tensor(WANTED, dtype=torch.float64)

    def minimum(weights):
        factors = [1.0, *weights]
        hessian = sum(w * bowl.curvature for w, bowl in zip(factors, bowls, strict=True))
        return torch.linalg.solve(hessian, sum(w * o.curvature @ o.centre for w, o in zip(factors, bowls, strict=True)))

    def auxiliary(weights):
        return 0.5 * (minimum(weights) - wanted).square().sum().item()

    phi = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)
    theta = minimum(phi.tolist()).requires_grad_()
    losses = torch.stack([0.5 * (theta - o.centre) @ o.curvature @ (theta - o.centre) for o in bowls])
    loss = 0.5 * (theta - wanted).square().sum()
    found = hypergradient(linear_combination(phi, losses), loss, [theta], phi, rate=0.1, terms=80)
    for place in (0, 1):
        up, down = phi.tolist(), phi.tolist()
        up[place] += 1e-5
        down[place] -= 1e-5
        assert found[place].item() == pytest.approx((auxiliary(up) - auxiliary(down)) / 2e-5, rel=1e-5)


def test_parameters_that_a_loss_does_not_know_count_as_zero():
    theta, idle = (torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True) for _ in range(2))
    phi = torch.ones(1, dtype=torch.float64, requires_grad=True)
    train, auxiliary = phi[0] * theta.square().sum(), (theta * torch.tensor([1.0, -3.0])).sum()
    alone = hypergradient(train, auxiliary, [theta], phi, rate=0.1, terms=2)
    assert torch.equal(hypergradient(train, auxiliary, [theta, idle], phi, rate=0.1, terms=2), alone)


@pytest.mark.parametrize(("combined", "size"), [(linear_combination, 2), (monotone_combination, 15)])
def test_combinations_rise_with_every_loss_and_the_first_keeps_its_weight(combined, size):
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        learned = torch.rand(size, generator=generator, dtype=torch.float64)
        losses = (3 * torch.randn(3, generator=generator, dtype=torch.float64)).requires_grad_()
        slopes = torch.autograd.grad(combined(learned, losses), losses)[0]
        assert (slopes >= 0).all()
        assert slopes[0] >= 1
    torch.testing.assert_close(
        linear_combination(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 10.0, 100.0])), torch.tensor(321.0)
    )


def three_bowls():
    return {"source": Bowl(SOURCE), "alignment": Bowl(HELPFUL), "target": Bowl(HARMFUL)}


@pytest.mark.parametrize("combination", ["linear", "monotone"])
def test_the_helpful_loss_gains_weight_the_harmful_one_loses_it_and_the_guide_falls(combination):
    runs = {}
    for scheme in (Linear(), AuxiLearn(combination=combination, interval=2)):
        guided = isinstance(scheme, AuxiLearn)
        step = point_step([0.5, 0.5], three_bowls(), scheme, lr=0.1, guide=Bowl(WANTED) if guided else None)
        reports = [step(point_batch()) for _ in range(300)]
        away = step.model.encoder.at.detach() - torch.tensor(WANTED)
        runs[guided] = (reports[-1].weights, away.square().sum().item())
    weights, learned = runs[True]
    assert weights["alignment"] > 1.2 * weights["target"]
    assert learned < 0.5 * runs[False][1]
    if combination == "linear":
        assert weights["source"] == 1.0
        assert weights["alignment"] > 1.0 > weights["target"] >= 0.0


def test_weights_never_become_negative():
    step = point_step([0.5, 0.5], three_bowls(), AuxiLearn(interval=1, rate=0.3), guide=Bowl(WANTED))
    weights = [step(point_batch()).weights["target"] for _ in range(40)]
    assert min(weights) == 0.0


def test_the_step_goes_along_the_combination_and_the_guide_is_read_when_it_learns():
    step = point_step([0.5, 0.5], three_bowls(), AuxiLearn(combination="monotone", interval=3), guide=Bowl(WANTED))
    asked = []
    for _ in range(8):
        asked.append(step.wants_guide)
        state = torch.tensor(step.scheme._state(3).values, dtype=torch.float64)
        here = step.model.encoder.at.detach().clone().requires_grad_()
        losses = torch.stack([0.5 * (here - o.centre).square().sum() for o in step.objectives.values()])
        expected = torch.autograd.grad(monotone_combination(state, losses), here)[0]
        got = filled(step, point_batch())["model.encoder.at"]
        if not asked[-1]:
            torch.testing.assert_close(got, expected)
        step.optimiser.step()
    assert asked == [False, False, False, True, False, False, True, False]
    report = step(point_batch())
    assert report.move is Move.LEARNED
    assert report.guide_loss is None


def test_a_network_learns_its_weights_and_goes_on_after_a_restart_as_if_nothing_had_been():
    def fresh():
        return network_step(AuxiLearn(interval=2), guide=InformationGuide(4, 3))

    batches = [network_batch(seed) for seed in range(9)]
    whole, cut = fresh(), fresh()
    reports = [whole(batch) for batch in batches]
    for batch in batches[:5]:
        cut(batch)
    again = fresh()
    again.modules().load_state_dict(cut.modules().state_dict())
    again.scheme.load_state_dict(json.loads(json.dumps(cut.scheme.state_dict())))
    rest = [again(batch) for batch in batches[5:]]
    assert [report.weights for report in rest] == [report.weights for report in reports[5:]]
    assert reports[-1].weights != reports[0].weights == {"source": 1.0, "alignment": 1.0, "target": 1.0}
    assert [report.guide_loss is not None for report in reports] == [n in (2, 4, 6, 8) for n in range(9)]


def test_what_makes_no_sense_is_told():
    for wrong in ({"combination": "cubic"}, {"interval": 0}, {"terms": -1}, {"rate": -1.0}, {"neumann_rate": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            AuxiLearn(**wrong)
    with pytest.raises(ValueError, match="choose a method or a target loss as well"):
        point_step(SOURCE, {"source": Bowl(SOURCE)}, AuxiLearn(), guide=Bowl(WANTED))
    with pytest.raises(ValueError, match="give the step one"):
        point_step(SOURCE, three_bowls(), AuxiLearn())
    step = point_step(SOURCE, three_bowls(), AuxiLearn(interval=1, neumann_rate=1e200), guide=Bowl(WANTED))
    step(point_batch())
    with pytest.raises(NonFiniteError, match=r"scheme\.terms=0"):
        step(point_batch())
