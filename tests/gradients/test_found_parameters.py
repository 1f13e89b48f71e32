"""`paretoda.backward` without `shared`: the encoder is found from the graph of its features."""

import pytest
import torch
from gradients.networks import Toy, flat_grad
from torch import nn

import paretoda
from paretoda.gradients.tensors import find_parameters, last_layer
from paretoda.schemes import MGDA, Linear, ParetoDA


def step(toy, scheme, **settings):
    toy.clear()
    features = toy.features()
    return paretoda.backward(
        toy.losses(features),
        scheme=scheme,
        guide=toy.guide(features),
        features=features,
        heads=toy.classifier,
        private=[(toy.private(features), toy.discriminator)],
        **settings,
    )


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("voting", ["all", "last"])
@pytest.mark.parametrize("scheme", [Linear(), MGDA(), ParetoDA()], ids=lambda scheme: type(scheme).__name__)
def test_the_gradients_are_those_of_a_call_that_names_the_encoder(scheme, voting, joint):
    toy = Toy(joint=joint)
    named = step(toy, scheme, voting=voting, shared=toy.encoder)
    expected = flat_grad(toy.networks()).clone()
    found = step(toy, scheme, voting=voting)
    torch.testing.assert_close(flat_grad(toy.networks()), expected, rtol=1e-12, atol=1e-12)
    assert found.move == named.move
    assert found.alpha == pytest.approx(named.alpha)


def test_parameters_are_found_in_the_order_of_the_forward_pass():
    encoder = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5), nn.LayerNorm(5)
    )
    found = find_parameters([encoder(torch.randn(2, 3, 4, 4))])
    assert [id(parameter) for parameter in found] == [id(parameter) for parameter in encoder.parameters()]
    assert [id(p) for p in last_layer(found)] == [id(p) for p in last_layer(list(encoder.parameters()))]


def test_a_layer_that_is_used_twice_is_found_once_and_frozen_ones_are_not():
    tied, frozen = nn.Linear(3, 3), nn.Linear(3, 3).requires_grad_(False)
    inputs = torch.randn(2, 3, requires_grad=True)
    found = find_parameters([tied(frozen(tied(inputs))), tied(inputs).detach()])
    assert [id(parameter) for parameter in found] == [id(tied.weight), id(tied.bias)]


def test_micro_batches_bring_their_encoder_along():
    toy = Toy(norm=False)

    def gradient(**settings):
        toy.clear()
        batch = paretoda.MicroBatches(toy.encoder, toy.source, parts=3)
        losses = [batch.features.square().mean(), batch.features.mean(0).square().sum()]
        paretoda.backward(losses, scheme=MGDA(), features=batch, **settings)
        return flat_grad(toy.encoder).clone()

    assert torch.equal(gradient(), gradient(shared=toy.encoder))


class TwoProcesses:
    size = 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "shared is missing"),
        ({"features": torch.randn(4, 2)}, "not a detached copy"),
        ({"features": torch.randn(4, 2, requires_grad=True)}, "not a detached copy"),
        ({"features": nn.Linear(2, 2)(torch.randn(4, 2)), "processes": TwoProcesses()}, "several processes"),
    ],
    ids=["no features", "no graph", "a leaf", "several processes"],
)
def test_where_it_cannot_be_found_one_sentence_says_why(settings, message):
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=message) as error:
        paretoda.backward([weight.sum()], scheme=MGDA(), **settings)
    assert "\n" not in str(error.value)
    assert weight.grad is None
