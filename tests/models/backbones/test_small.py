"""MLP, LeNet and the small CNN: shapes, and LeNet's published arithmetic at 28 pixels."""

import pytest
import torch
from torch import nn

from paretoda.models.backbones.small import cnn, cnn_width, lenet, mlp


def kinds(network):
    return [type(layer).__name__ for layer in network]


def test_an_mlp_is_512_256_with_batchnorm_unless_told():
    assert kinds(mlp(10)) == ["Linear", "BatchNorm1d", "ReLU"] * 2
    assert [layer.out_features for layer in mlp(10) if isinstance(layer, nn.Linear)] == [512, 256]
    assert mlp(10)(torch.randn(3, 10)).shape == (3, 256)
    assert kinds(mlp(10, (5,), norm="none", dropout=0.3)) == ["Linear", "ReLU", "Dropout"]
    assert mlp(10, (5,), dropout=0.3)[3].p == 0.3


def test_an_mlp_without_layers_or_of_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="at least one layer"):
        mlp(10, ())
    with pytest.raises(ValueError, match="norm must be"):
        mlp(10, norm="layer")


def test_lenet_is_the_published_one_at_28_pixels():
    network = lenet().eval()
    assert sum(p.numel() for p in network.parameters()) == 20 * 26 + 50 * 501 + 500 * 801
    assert [layer.p for layer in network if isinstance(layer, nn.Dropout | nn.Dropout2d)] == [0.5, 0.5]
    x = torch.randn(4, 1, 28, 28)
    first = nn.functional.max_pool2d(network[0](x), 2).relu()
    second = nn.functional.max_pool2d(network[3](first), 2).relu()
    assert torch.allclose(network(x), network[8](second.flatten(1)).relu())


@pytest.mark.parametrize("shape", [(1, 14, 14), (3, 16, 16), (3, 32, 32), (2, 20, 40)])
def test_lenet_reads_other_sizes_and_channels(shape):
    assert lenet(shape[0], 100)(torch.randn(2, *shape)).shape == (2, 100)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 16, 16), (3, 32, 32), (4, 64, 64), (3, 20, 33)])
def test_the_cnn_reads_all_sizes_and_channels(shape):
    assert cnn(shape[0])(torch.randn(2, *shape)).shape == (2, cnn_width()) == (2, 512)


def test_the_cnn_tells_places_apart():
    image = torch.zeros(1, 1, 16, 16)
    image[0, 0, 2:5, 2:5] = 1
    network = cnn(1).eval()
    assert not torch.allclose(network(image), network(image.flip(2)))
