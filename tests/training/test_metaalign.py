"""MetaAlign against closed forms on quadratics and against a double backward pass on a network."""

import pytest
import torch
from torch.func import functional_call
from training.networks import network_batch, network_step
from training.points import Bowl, filled, point_batch, point_step

from paretoda.models.batchnorm import frozen_statistics
from paretoda.schemes import Linear
from paretoda.training.seeding import seed_everything
from paretoda.training.strategies import MetaAlign
from paretoda.types import Source, Target

HERE, ONE, TWO = [1.0, -2.0], [3.0, 0.5], [-1.0, 4.0]
A, B = [[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 3.0]]


def bowls():
    return {"source": Bowl(TWO, B), "alignment": Bowl(ONE, A)}


@pytest.mark.parametrize("second_order", [False, True])
def test_on_quadratics_it_is_the_formula_of_the_specification(second_order):
    """(θ - a) + (θ' - b), and the second order multiplies the latter by 1 - α."""
    objectives = {"source": Bowl(TWO), "alignment": Bowl(ONE)}
    step = point_step(HERE, objectives, MetaAlign(rate=3.0, second_order=second_order), lr=0.1)
    here, one, two = (torch.tensor(x, dtype=torch.float64) for x in (HERE, ONE, TWO))
    ahead = here - 0.3 * (here - one)
    expected = (here - one) + (1 - 0.3 if second_order else 1.0) * (ahead - two)
    torch.testing.assert_close(filled(step, point_batch())["model.encoder.at"], expected)


def test_the_inner_steps_own_derivative_is_one_minus_the_hessian_of_the_first_loss():
    step = point_step(HERE, bowls(), MetaAlign(second_order=True), lr=0.1)
    here, one, two, a, b = (torch.tensor(x, dtype=torch.float64) for x in (HERE, ONE, TWO, A, B))
    ahead = here - 0.1 * a @ (here - one)
    expected = a @ (here - one) + (torch.eye(2).double() - 0.1 * a) @ b @ (ahead - two)
    torch.testing.assert_close(filled(step, point_batch())["model.encoder.at"], expected)


def test_the_two_change_places_at_every_other_step_and_a_restart_knows_whose_turn_it_is():
    first = point_step(HERE, bowls(), MetaAlign(), lr=0.1)
    one, two, three = (filled(first, point_batch())["model.encoder.at"] for _ in range(3))
    assert torch.equal(one, three)
    assert not torch.allclose(one, two)
    swapped = point_step(HERE, bowls(), MetaAlign(train="source", test="alignment"), lr=0.1)
    assert torch.equal(filled(swapped, point_batch())["model.encoder.at"], two)
    again = point_step(HERE, bowls(), MetaAlign(), lr=0.1)
    again.scheme.load_state_dict({"count": 3})
    assert first.scheme.state_dict() == {"count": 3}
    assert torch.equal(filled(again, point_batch())["model.encoder.at"], two)
    steady = point_step(HERE, bowls(), MetaAlign(alternate=False), lr=0.1)
    filled(steady, point_batch())
    assert torch.equal(filled(steady, point_batch())["model.encoder.at"], one)


def test_without_an_inner_step_it_is_the_plain_sum_with_the_same_dropout():
    batch, reports = network_batch(), []
    for scheme in (Linear(), MetaAlign(rate=0.0)):
        step = network_step(scheme, dropout=0.5)
        seed_everything(0, "step", 0)
        reports.append((step(batch), step.modules().state_dict()))
    (plain, before), (meta, after) = reports
    assert meta.losses.tolist() == plain.losses.tolist()
    assert meta.weights == plain.weights == {"source": 1.0, "alignment": 1.0, "target": 1.0}
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=1e-15)


@pytest.mark.parametrize("second_order", [False, True])
def test_on_a_network_it_is_the_gradient_of_the_function(second_order):
    """An oracle of its own: torch.func's gradient of L_1(θ) + L_2(θ - α ∇L_1(θ)) + the rest, head and BatchNorm in θ.

    First order: the same with ∇L_1 taken at a copy of θ that does not move.
    """
    batch = network_batch()
    step = network_step(MetaAlign(second_order=second_order))
    rates = {name: 0.2 if name.startswith("encoder") else 0.05 for name, _ in step.model.named_parameters()}

    def losses(parameters):
        def part(name):
            return {n.removeprefix(f"{name}."): p for n, p in parameters.items() if n.startswith(name)}

        def logits_of(features):
            return functional_call(step.model.head, part("head"), features)

        with frozen_statistics(step.model.encoder.train()):
            both = functional_call(step.model.encoder, part("encoder"), torch.cat([batch.source, batch.target]))
        source = Source(both[:9], logits_of(both[:9]), batch.source_index, labels=batch.labels)
        target = Target(both[9:], logits_of(both[9:]), batch.target_index)
        return {name: objective(source, target) for name, objective in step.objectives.items()}

    def total(parameters, fixed):
        at = parameters if second_order else fixed
        slopes = torch.func.grad(lambda p: losses(p)["alignment"])(at)
        ahead = {name: parameters[name] - rates[name] * slopes[name] for name in parameters}
        here = losses(parameters)
        return here["alignment"] + here["target"] + losses(ahead)["source"]

    theta = {name: tensor.detach().clone() for name, tensor in step.model.named_parameters()}
    expected = torch.func.grad(total)(theta, theta)
    got = filled(step, batch)
    for name, gradient in expected.items():
        torch.testing.assert_close(got[f"model.{name}"], gradient, rtol=1e-9, atol=1e-12)


def test_the_discriminator_and_what_batchnorm_remembers_are_those_of_one_look():
    batch = network_batch()
    plain, meta = network_step(Linear()), network_step(MetaAlign(rate=5.0))
    for step in (plain, meta):
        step(batch)
    one, other = plain.modules().state_dict(), meta.modules().state_dict()
    same = [n for n in one if "objective" in n or "running" in n or "num_batches" in n]
    assert len(same) > 6
    for name in same:
        torch.testing.assert_close(other[name], one[name], rtol=0, atol=1e-15)
    assert not torch.allclose(one["model.encoder.0.weight"], other["model.encoder.0.weight"])


def test_agreeing_gradients_are_sought():
    """With Hessians A, B the second order's average over both turns is ∇(L_1 + L_2 - α <∇L_1, ∇L_2>) + O(α²)."""
    rate = 1e-4
    step = point_step(HERE, bowls(), MetaAlign(second_order=True), lr=rate)
    mean = sum(filled(step, point_batch())["model.encoder.at"] for _ in range(2)) / 2
    here = torch.tensor(HERE, dtype=torch.float64, requires_grad=True)
    one, two, a, b = (torch.tensor(x, dtype=torch.float64) for x in (ONE, TWO, A, B))
    slopes = a @ (here - one), b @ (here - two)
    (bonus,) = torch.autograd.grad(slopes[0] @ slopes[1], here)
    torch.testing.assert_close((mean - (slopes[0] + slopes[1])) / rate, -bonus, rtol=1e-3, atol=1e-3)


def test_what_makes_no_sense_is_told():
    with pytest.raises(ValueError, match="both 'source'"):
        MetaAlign(train="source")
    with pytest.raises(ValueError, match="rate must be 0 or more"):
        MetaAlign(rate=-1)
    with pytest.raises(
        ValueError, match=r"the losses are source, target: name one of them with --options scheme\.train"
    ):
        point_step(HERE, {"source": Bowl(ONE), "target": Bowl(TWO)}, MetaAlign())
    point_step(HERE, {"source": Bowl(ONE), "target": Bowl(TWO)}, MetaAlign(train="target"))
