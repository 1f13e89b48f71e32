"""Dropout: the share that is dropped, the mean that is kept, and what leaves it alone."""

import pytest
import torch
from torch import nn

from paretoda.distributed.layers import shared_dropout
from paretoda.models.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_p_is_dropped_and_the_mean_is_kept(p):
    torch.manual_seed(0)
    out = Dropout(p)(torch.ones(400, 1000))
    dropped = (out == 0).double()
    assert dropped.mean().item() == pytest.approx(p, abs=5 * (p * (1 - p) / 4e5) ** 0.5)
    assert dropped.mean(0).std().item() == pytest.approx((p * (1 - p) / 400) ** 0.5, rel=0.2)  # entries are independent
    assert out.mean().item() == pytest.approx(1, abs=0.02)
    assert out.unique().tolist() == pytest.approx([0, 1 / (1 - p)], rel=1e-4)


def test_every_place_of_the_random_bits_is_used_alike():
    torch.manual_seed(0)
    out = Dropout(0.3)(torch.ones(4 * 50_000)).view(-1, 4)  # four entries share a draw of 64 bits
    assert (out == 0).double().mean(0).tolist() == pytest.approx([0.3] * 4, abs=0.01)
    both = ((out[:, 0] == 0) & (out[:, 1] == 0)).double().mean().item()
    assert both == pytest.approx(0.09, abs=0.01)


def test_the_gradient_is_the_mask():
    torch.manual_seed(0)
    x = torch.ones(64, requires_grad=True)
    out = Dropout(0.5)(x)
    (slope,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(slope, out.detach())


def test_the_seed_decides_and_evaluation_draws_nothing():
    layer, x = Dropout(0.5), torch.randn(33)  # not a multiple of the four entries of a draw
    torch.manual_seed(3)
    one = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), one)
    state = torch.get_rng_state()
    assert layer.eval()(x) is x or torch.equal(layer(x), x)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_ends_are_those_of_torch(p):
    x = torch.randn(20)
    assert torch.equal(Dropout(p)(x), nn.Dropout(p)(x))


def test_parts_of_a_batch_drop_what_the_whole_batch_drops():
    layer, x = Dropout(0.5), torch.ones(10, 7)
    torch.manual_seed(1)
    whole = layer(x)
    rows = torch.tensor([2, 5, 9])
    torch.manual_seed(1)
    with shared_dropout(layer, 10, rows):
        assert torch.equal(layer(x[rows]), whole[rows])
