"""Dropout and BatchNorm of a batch that goes through a network in parts."""

import pytest
import torch
from torch import nn

from paretoda.distributed.layers import shared_dropout
from paretoda.models.batchnorm import pooled_statistics

LAYERS = {
    "features": (nn.Dropout(0.4), (10, 6)),
    "maps": (nn.Dropout(0.4), (10, 3, 4, 4)),
    "channels": (nn.Dropout2d(0.4), (10, 3, 4, 4)),
    "signals": (nn.Dropout1d(0.4), (10, 3, 7)),
    "volumes": (nn.Dropout3d(0.4), (10, 3, 2, 2, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_parts_drop_what_the_whole_batch_drops_and_leave_chance_where_it_would_be(name, dtype):
    layer, shape = LAYERS[name]
    network = nn.Sequential(layer, layer)
    x = torch.randn(shape).to(dtype)
    torch.manual_seed(3)
    whole, after = network(x), torch.rand(2)
    for rows in (torch.arange(4), torch.tensor([9, 2, 5])):
        torch.manual_seed(3)
        with shared_dropout(network, 10, rows):
            part = network(x[rows])
        assert torch.equal(part, whole[rows])
        assert torch.equal(torch.rand(2), after)
    assert "forward" not in vars(layer)


def test_dropout_in_evaluation_mode_and_on_other_rows_is_as_ever():
    layer, x = nn.Dropout(0.5), torch.randn(4, 3)
    with shared_dropout(layer.eval(), 8, torch.arange(4)):
        assert torch.equal(layer(x), x)
    layer.train()
    torch.manual_seed(0)
    expected = layer(x)
    torch.manual_seed(0)
    with shared_dropout(layer, 8, torch.arange(2)):
        assert torch.equal(layer(x), expected), "four rows are not those two"


def _normed(kind, momentum):
    torch.manual_seed(0)
    layer = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d}[kind](3, momentum=momentum).double()
    layer.running_mean.copy_(torch.randn(3))
    return layer


@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
@pytest.mark.parametrize(("kind", "shape"), [(1, (11, 3)), (2, (11, 3, 4, 5))])
@pytest.mark.parametrize("sizes", [(11,), (4, 4, 3), (2, 9)])
def test_the_running_statistics_of_parts_are_those_of_the_whole(kind, shape, sizes, momentum):
    whole, parts = _normed(kind, momentum), _normed(kind, momentum)
    for _ in range(2):
        x = torch.randn(shape).double() * 3 + torch.arange(11).double().reshape(-1, *[1] * (len(shape) - 1))
        whole(x)
        with pooled_statistics(parts):
            for part in x.split(sizes):
                parts(part)
    for one, other in zip(whole.buffers(), parts.buffers(), strict=True):
        assert torch.allclose(one.double(), other.double(), rtol=1e-12, atol=1e-12)
    assert not parts._forward_pre_hooks


def test_layers_that_do_not_remember_stay_so_and_an_error_leaves_everything_as_it_was():
    layer = _normed(1, 0.1)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    with pooled_statistics(layer.eval()):
        layer(torch.randn(5, 3).double())
    layer.train()

    def fail():
        with pooled_statistics(layer):
            layer(torch.randn(5, 3).double())
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        fail()
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.state_dict().items())
    assert layer.track_running_stats
