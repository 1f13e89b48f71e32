"""`MicroBatches` in anybody's own loop."""

import pytest
import torch
from gradients.networks import Toy, flat_grad
from torch import nn

import paretoda
from paretoda.schemes import MGDA, Linear, ParetoPaper


def run(toy, scheme, parts=None, **settings):
    toy.clear()
    if parts is None:
        features, given = toy.features(), None
    else:
        inputs = (toy.source, toy.target, toy.held_out)
        given = [
            paretoda.MicroBatches(toy.encoder, x, parts, keep_last=settings.get("voting") == "last") for x in inputs
        ]
        features = tuple(batch.features for batch in given)
    return paretoda.backward(
        toy.losses(features),
        shared=toy.encoder,
        scheme=scheme,
        guide=toy.guide(features),
        features=given if given is not None else features,
        heads=toy.classifier,
        private=[(toy.private(features), toy.discriminator)],
        **settings,
    )


@pytest.mark.parametrize("scheme", [Linear((1.0, 0.3, 0.2)), MGDA(), ParetoPaper()], ids=["linear", "mgda", "paper"])
@pytest.mark.parametrize("settings", [{}, {"voting": "last"}, {"head_losses": ["source"]}], ids=str)
@pytest.mark.parametrize("parts", [1, 2, 5, 100])
def test_gradients_are_those_of_the_whole_batch(scheme, settings, parts):
    whole, toy = Toy(norm=False), Toy(norm=False)
    one, two = run(whole, scheme, **settings), run(toy, scheme, parts, **settings)
    assert two.alpha == pytest.approx(one.alpha, abs=1e-10)
    assert two.losses == pytest.approx(one.losses, abs=1e-12)
    for mine, theirs in zip(toy.grads(), whole.grads(), strict=True):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)


def test_several_inputs_are_one_batch_and_come_apart_again():
    toy = Toy(norm=False)
    both = paretoda.MicroBatches(toy.encoder, [toy.source, toy.target], 3)
    source, target = both.split()
    assert torch.allclose(source, toy.encoder(toy.source))
    assert torch.allclose(target, toy.encoder(toy.target))
    loss = toy.losses((source, target, None))
    paretoda.backward(loss, shared=toy.encoder, scheme=MGDA(), features=both, heads=toy.classifier)
    expected = Toy(norm=False)
    features = expected.features()
    paretoda.backward(
        expected.losses(features), shared=expected.encoder, scheme=MGDA(), features=features, heads=expected.classifier
    )
    assert torch.allclose(flat_grad(toy.encoder), flat_grad(expected.encoder), rtol=0, atol=1e-12)


def test_a_non_finite_gradient_in_one_part_is_named_and_nothing_is_written():
    class Broken(nn.Module):
        def forward(self, x):
            return x / torch.where(torch.is_grad_enabled() & (x[:, :1] > 1), 0.0, 1.0) if self.training else x

    toy = Toy(norm=False)
    toy.encoder = nn.Sequential(Broken().double(), *toy.encoder)
    with pytest.raises(paretoda.NonFiniteError, match="the gradient of"):
        run(toy, MGDA(), 3)
    assert toy.grads() == [None] * len(toy.grads())
    assert all("forward" not in vars(module) for module in toy.encoder.modules())


def test_wrong_arguments_get_one_sentence():
    toy = Toy(norm=False)
    with pytest.raises(ValueError, match="at least one part"):
        paretoda.MicroBatches(toy.encoder, toy.source, 0)
    with pytest.raises(ValueError, match="at least one row"):
        paretoda.MicroBatches(toy.encoder, toy.source[:0], 2)
    batch = paretoda.MicroBatches(toy.encoder, toy.source, 2)
    with pytest.raises(ValueError, match="not both"):
        paretoda.backward(
            [batch.features.mean()], shared=toy.encoder, scheme=MGDA(), features=[batch, toy.encoder(toy.target)]
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gradient_has_the_layout_of_its_parameter(dtype):
    """A fused optimiser reads both by position: with another layout it once moved the wrong weights, silently."""
    torch.manual_seed(0)
    plain = nn.Conv2d(3, 4, 3, dtype=dtype)
    last = nn.Conv2d(3, 4, 3, dtype=dtype)
    last.load_state_dict(plain.state_dict())
    last.to(memory_format=torch.channels_last)
    x = torch.randn(5, 3, 6, 6, dtype=dtype)
    for network in (plain, last):
        y = network(x)
        paretoda.backward([y.square().mean(), (y - 1).abs().mean()], shared=network, scheme=MGDA(), features=y)
        network.weight.grad = None
        contiguous = torch.ones(4, 3, 3, 3, dtype=dtype).cumsum(0).mul(torch.arange(3, dtype=dtype)).contiguous()
        paretoda.backward([(network.weight * contiguous).sum()], shared=network, scheme=Linear())
        assert network.weight.grad.stride() == network.weight.stride()
        torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, fused=True).step()
    assert torch.equal(plain.weight, last.weight)
