"""CyCADA's gate: which accuracy opens it, what it keeps from the encoder, and what is remembered when."""

import copy
import math

import pytest
import torch
from objectives.samples import silent
from objectives.segmentation.scenes import Scenes

from paretoda.objectives.segmentation import AdaSegNet, AdvEnt
from paretoda.objectives.segmentation.map_adversary import GATE_STEPS, AccuracyGate, accuracy

BOTH = pytest.mark.parametrize("kind", [AdaSegNet, AdvEnt])


def made(kind=AdaSegNet, **options):
    torch.manual_seed(0)
    return kind(6, 4, width=8, **options).double()


def told(gate, *accuracies):
    for each in accuracies:
        gate.learn(torch.tensor(each))
    return gate


def test_accuracy_is_the_mean_of_both_domains_shares():
    source, target = torch.tensor([1.0, 2.0, -1.0, 0.0]), torch.tensor([[-1.0, 0.0], [3.0, -2.0], [-1.0, -1.0]])
    assert accuracy(source, target, border=0.0).item() == pytest.approx((2 / 4 + 5 / 6) / 2)
    assert accuracy(source, target, border=1.5).item() == pytest.approx((1 / 4 + 5 / 6) / 2)
    assert accuracy(torch.zeros(3), torch.zeros(5), border=0.0).item() == 0.5


def test_it_is_closed_until_something_is_known_and_at_the_gate_itself():
    gate = AccuracyGate(1, 0.75)
    assert gate() == [False]
    assert told(gate, [0.75])() == [False]
    assert told(gate, [0.8])() == [True]
    assert told(gate, [0.7])() == [False]


def test_the_last_hundred_steps_count_and_no_earlier_one():
    gate = told(AccuracyGate(2, 0.6), *[[1.0, 0.5]] * 20, *[[0.5, 1.0]] * 80)
    assert GATE_STEPS == 100
    assert gate.recent.mean(0).tolist() == pytest.approx([0.6, 0.9])
    assert told(gate, [0.6, 0.6])() == [False, True]
    assert gate.recent.mean(0).tolist() == pytest.approx([0.596, 0.901])
    assert told(gate, *[[0.0, 0.0]] * 99)() == [False, False]
    assert gate.recent.mean(0).tolist() == pytest.approx([0.006, 0.006])
    assert told(gate, [0.0, 0.0]).recent.sum().item() == 0


@BOTH
def test_a_closed_gate_gives_zero_and_an_open_one_changes_nothing(kind):
    source, target = Scenes().batch()
    gated, plain = made(kind, gate=0.6), made(kind)
    closed = gated(source, target)
    assert closed.item() == 0
    assert closed.requires_grad
    assert silent(closed, [target.logits, target.features])
    told(gated.gate, [0.7])
    assert gated(source, target).item() == plain(source, target).item()
    found = [torch.autograd.grad(objective(source, target), target.logits)[0] for objective in (gated, plain)]
    assert found[0].equal(found[1])
    assert gated.private_loss(source, target).item() == plain.private_loss(source, target).item()


def test_each_output_has_a_gate_of_its_own():
    source, target = Scenes("two levels").batch()
    gated, plain = made(gate=0.6, levels=2), made(levels=2)
    told(gated.gate, [0.5, 0.7])
    loss = gated(source, target)
    assert silent(loss, [target.logits])
    assert not silent(loss, [target.extra_logits[0]])
    alone = copy.deepcopy(plain)
    alone.strengths = (0.0, 2e-4)
    assert loss.item() == pytest.approx(alone(source, target).item())
    told(gated.gate, [1.0, 0.7])
    assert gated(source, target).item() == plain(source, target).item()


@pytest.mark.parametrize("least_squares", [False, True])
def test_what_is_remembered_is_how_right_the_discriminators_were(least_squares):
    source, target = Scenes("two levels").batch()
    objective = made(gate=0.6, levels=2, layers=1, least_squares=least_squares)
    border = 0.5 if least_squares else 0.0
    expected = []
    for network, ours, theirs in zip(
        objective.discriminators,
        (source.logits, source.extra_logits[0]),
        (target.logits, target.extra_logits[0]),
        strict=True,
    ):
        with torch.no_grad():  # scores on both sides of the border
            network.layers[-1].bias += border - network(objective.discriminator_input(theirs)).median()
        scores = [network(objective.discriminator_input(maps)) for maps in (ours, theirs)]
        expected.append(((scores[0] > border).double().mean() + (scores[1] <= border).double().mean()).item() / 2)
    assert all(abs(each - 0.5) > 0.01 for each in expected), expected
    objective.private_loss(source, target)
    assert objective.gate.recent[-1].tolist() == pytest.approx(expected)
    assert objective.gate.recent[:-1].isnan().all()


def test_a_discriminator_that_learns_opens_it():
    with torch.no_grad():
        source, target = Scenes().batch()
    objective = made(gate=0.6)
    optimiser = torch.optim.Adam(objective.parameters(), lr=1e-2)
    heard = []
    for _ in range(60):
        heard.append(objective(source, target).item() > 0)
        optimiser.zero_grad()
        objective.private_loss(source, target).backward()
        optimiser.step()
    assert not heard[0]
    assert heard[-1]


def test_only_the_private_loss_in_training_is_remembered():
    batch = Scenes().batch()
    objective = made(gate=0.6)
    objective(*batch)
    objective.eval().private_loss(*batch)
    assert objective.gate.recent.isnan().all()
    objective.train().private_loss(*batch)
    before = objective.gate.recent.clone()
    assert (~before.isnan()).sum() == 1
    objective(*batch)
    torch.testing.assert_close(objective.gate.recent, before, rtol=0, atol=0, equal_nan=True)


def test_a_resumed_run_knows_what_was_remembered():
    batch = Scenes().batch()
    objective, twin = made(gate=0.3), made(gate=0.3)
    for _ in range(3):
        objective.private_loss(*batch)
    told(objective.gate, [0.9])
    twin.load_state_dict(objective.state_dict())
    assert twin(*batch).item() == objective(*batch).item() > 0
    told(objective.gate, [0.1])
    told(twin.gate, [0.1])
    torch.testing.assert_close(twin.gate.recent, objective.gate.recent, rtol=0, atol=0, equal_nan=True)


def test_without_a_gate_the_state_is_as_it_was():
    assert not [key for key in made().state_dict() if "gate" in key]
    assert made().gate is None


@pytest.mark.parametrize("gate", [-0.1, 1.0, 60, math.nan])
def test_an_impossible_gate_is_refused(gate):
    with pytest.raises(ValueError, match="gate must be an accuracy below 1"):
        made(gate=gate)
