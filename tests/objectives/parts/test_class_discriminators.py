"""One batched layer is a loop over K networks: same values, same gradients, same running statistics."""

import pytest
import torch
from torch import nn

from paretoda.objectives.parts.class_discriminators import ClassDiscriminators


def loop_over(ours, features, classes, width):
    """K ordinary networks with the same weights."""
    networks = []
    for k in range(classes):
        part = slice(k * width, (k + 1) * width)
        layers = nn.Sequential(
            nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, 1),
        ).double()  # fmt: skip
        with torch.no_grad():
            for index, weight, bias in (
                (0, ours.first[k], ours.first_bias[k]),
                (1, ours.first_norm.weight[part], ours.first_norm.bias[part]),
                (3, ours.second[k], ours.second_bias[k]),
                (4, ours.second_norm.weight[part], ours.second_norm.bias[part]),
                (6, ours.last[k], ours.last_bias[k]),
            ):
                layers[index].weight.copy_(weight)
                layers[index].bias.copy_(bias.flatten())
        networks.append(layers)
    return networks


def layer(features, classes, width):
    torch.manual_seed(0)
    ours = ClassDiscriminators(features, classes, width).double()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return ours


@pytest.mark.parametrize(
    ("features", "classes", "width", "n"), [(5, 2, 3, 4), (6, 7, 4, 9), (3, 65, 8, 10), (4, 3, 1, 2)]
)
def test_it_equals_a_loop_over_ordinary_networks(features, classes, width, n):
    ours = layer(features, classes, width)
    networks = loop_over(ours, features, classes, width)
    x = torch.randn(n, features, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(n, classes, dtype=torch.float64)
    batched = ours(x, "learn")
    looped = torch.cat([network(x) for network in networks], dim=1)
    torch.testing.assert_close(batched, looped)

    ours_x, *ours_p = torch.autograd.grad((batched * weights).sum(), [x, *ours.parameters()])
    theirs_x, *theirs_p = torch.autograd.grad(
        (looped * weights).sum(), [x, *(p for network in networks for p in network.parameters())]
    )
    torch.testing.assert_close(ours_x, theirs_x, atol=1e-9, rtol=1e-6)
    names = [name for name, _ in ours.named_parameters()]
    order = ["first", "first_bias", "first_norm.weight", "first_norm.bias", "second", "second_bias",
             "second_norm.weight", "second_norm.bias", "last", "last_bias"]  # fmt: skip
    for place, name in enumerate(order):
        stacked = torch.cat([gradient.flatten() for gradient in theirs_p[place :: len(order)]])
        torch.testing.assert_close(ours_p[names.index(name)].flatten(), stacked, atol=1e-9, rtol=1e-6)

    for network in networks:
        network.eval()
    looped = torch.cat([network(x) for network in networks], dim=1)
    torch.testing.assert_close(ours(x, "running"), looped)


def test_classes_do_not_mix():
    ours = layer(5, 4, 3)
    x = torch.randn(6, 5, dtype=torch.float64)
    before = ours(x, "batch")
    with torch.no_grad():
        ours.first[2].mul_(-2)
    changed = (ours(x, "batch") != before).any(0)
    assert changed.tolist() == [False, False, True, False]


def test_rows_of_one_batch_are_normalised_together():
    ours = layer(5, 4, 3)
    x = torch.randn(6, 5, dtype=torch.float64)
    apart = torch.cat([ours(x[:3], "batch"), ours(x[3:], "batch")])
    assert not torch.allclose(ours(x, "batch"), apart)
    torch.testing.assert_close(ours(x, "running"), torch.cat([ours(x[:3], "running"), ours(x[3:], "running")]))


def test_it_starts_as_ordinary_layers_do():
    torch.manual_seed(0)
    ours = ClassDiscriminators(400, 3, 100)
    for parameter, inputs in ((ours.first, 400), (ours.first_bias, 400), (ours.second, 100), (ours.last, 100)):
        assert parameter.abs().max() <= inputs**-0.5
        assert parameter.abs().max() > 0.9 * inputs**-0.5
    assert len(list(ours.parameters())) == 10
    assert len(ours.state_dict()) == 16
