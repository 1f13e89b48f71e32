"""DeepLab-v2's body has the published parameters, sizes and arithmetic, and reads both kinds of published weights."""

import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from paretoda.errors import WeightsError
from paretoda.models.backbones.resnet import Bottleneck, ResNet, resnet50, resnet101
from paretoda.models.segmentation.deeplab import (
    DeepLabBody,
    DilatedBottleneck,
    deeplab_resnet50,
    deeplab_resnet101,
    load_body,
)

SIZES = {
    (321, 321): (41, 41),
    (512, 1024): (65, 129),
    (720, 1280): (91, 161),
    (120, 160): (16, 21),
    (180, 240): (23, 31),
}
ONES = (1, 1, 1, 1)


def block(stride=1, dilation=1, inputs=6, width=3, project=True):
    torch.manual_seed(0)
    made = DilatedBottleneck(inputs, width, stride, dilation, project).double()
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -1, 1)
            nn.init.uniform_(layer.running_var, 0.5, 2)
            nn.init.uniform_(layer.weight, 0.5, 2)
            nn.init.uniform_(layer.bias, -1, 1)
    return made.eval()


def expected_size(n):
    n = (n - 1) // 2 + 1  # conv1
    n = n // 2 + 1 if n % 2 == 0 else (n + 1) // 2  # pooling, rounded up
    return (n - 1) // 2 + 1  # layer2


def test_the_body_has_the_published_number_of_parameters():
    with torch.device("meta"):
        body = deeplab_resnet101()
    assert sum(parameter.numel() for parameter in body.parameters()) == 42_500_160
    norms = [layer for layer in body.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert sum(parameter.numel() for layer in norms for parameter in layer.parameters()) == 105_344


@pytest.mark.parametrize(("body", "network"), [(deeplab_resnet50, resnet50), (deeplab_resnet101, resnet101)])
def test_names_and_shapes_are_torchvisions(body, network):
    with torch.device("meta"):
        ours, theirs = body().state_dict(), network().state_dict()
    assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}


@pytest.mark.parametrize(("size", "smaller"), SIZES.items())
def test_the_maps_have_the_published_sizes(size, smaller):
    with torch.device("meta"):
        lower, last = deeplab_resnet101()(torch.empty(1, 3, *size))
    assert lower.shape == (1, 1024, *smaller)
    assert last.shape == (1, 2048, *smaller)


@pytest.fixture(scope="module")
def empty_body():
    with torch.device("meta"):
        return DeepLabBody(ONES)


@settings(max_examples=12, deadline=None)
@given(height=st.integers(8, 600), width=st.integers(8, 600))
def test_the_stride_is_eight_by_the_formula(empty_body, height, width):
    lower, last = empty_body(torch.empty(1, 3, height, width, device="meta"))
    assert lower.shape[2:] == last.shape[2:] == (expected_size(height), expected_size(width))


def test_only_the_stages_of_the_paper_have_strides_and_dilations():
    with torch.device("meta"):
        body = deeplab_resnet101()
    for stage, dilation, stride in (("layer1", 1, 1), ("layer2", 1, 2), ("layer3", 2, 1), ("layer4", 4, 1)):
        blocks = list(getattr(body, stage))
        assert all(b.conv2.dilation == b.conv2.padding == (dilation, dilation) for b in blocks)
        assert [b.conv1.stride[0] for b in blocks] == [stride] + [1] * (len(blocks) - 1)
        assert [b.downsample is not None for b in blocks] == [True] + [False] * (len(blocks) - 1)


def test_the_stride_drops_pixels_before_anything_else():
    x = torch.randn(2, 6, 9, 12, dtype=torch.float64)
    torch.testing.assert_close(block(stride=2)(x), block(stride=1)(x[:, :, ::2, ::2]))


@pytest.mark.parametrize("dilation", [2, 4])
def test_a_dilated_block_is_the_plain_block_on_each_coarser_grid(dilation):
    x = torch.randn(1, 6, 12, 11, dtype=torch.float64)
    dilated, plain = block(dilation=dilation)(x), block()(x[:, :, 1::dilation, 0::dilation].contiguous())
    torch.testing.assert_close(dilated[:, :, 1::dilation, 0::dilation], plain)


@pytest.mark.parametrize("project", [True, False])
def test_without_stride_and_dilation_a_block_is_resnets(project):
    mine = block(inputs=6 if project else 12, project=project)
    theirs = Bottleneck(6 if project else 12, 3).double().eval()
    theirs.load_state_dict(mine.state_dict())
    x = torch.randn(2, 6 if project else 12, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(mine(x), theirs(x))


def test_the_last_map_is_layer4_of_the_first():
    body = DeepLabBody(ONES).eval()
    lower, last = body(torch.randn(1, 3, 24, 32))
    torch.testing.assert_close(last, body.layer4(lower))
    assert (last >= 0).all()
    assert last.any()


@pytest.fixture(scope="module")
def torchvisions():
    torch.manual_seed(1)
    return ResNet(Bottleneck, ONES, classes=5).state_dict()


@pytest.mark.parametrize("prefix", ["", "Scale.", "module.", "module.Scale."])
def test_published_weights_load_under_all_their_names(tmp_path, caplog, torchvisions, prefix):
    old = {prefix + key: value for key, value in torchvisions.items() if "num_batches" not in key and "fc" not in key}
    branch = prefix + "layer5.conv2d_list.0.weight"
    torch.save(old | {branch: torch.zeros(21, 2048, 3, 3)}, tmp_path / "weights.pth")
    body = DeepLabBody(ONES)
    with caplog.at_level(logging.INFO, logger="paretoda"):
        assert load_body(body, tmp_path / "weights.pth") == ("layer5.conv2d_list.0.weight",)
    assert "layer5.conv2d_list.0.weight not used" in caplog.text
    for key, value in body.state_dict().items():
        assert key.endswith("num_batches_tracked") or torch.equal(value, torchvisions[key])


def test_torchvisions_classifier_goes_unused(tmp_path, torchvisions):
    save_file(torchvisions, tmp_path / "weights.safetensors")
    body = DeepLabBody(ONES)
    assert set(load_body(body, str(tmp_path / "weights.safetensors"))) == {"fc.weight", "fc.bias"}
    assert torch.equal(body.layer4[0].conv2.weight, torchvisions["layer4.0.conv2.weight"])


@pytest.mark.parametrize("prefix", ["scale.", "Scales."])
def test_weights_that_do_not_fit_change_nothing_and_are_named(tmp_path, torchvisions, prefix):
    torch.save({prefix + key: value for key, value in torchvisions.items()}, tmp_path / "weights.pth")
    body = DeepLabBody(ONES)
    before = body.conv1.weight.clone()
    with pytest.raises(WeightsError, match=r"another model: .*missing: conv1.weight"):
        load_body(body, tmp_path / "weights.pth")
    assert torch.equal(body.conv1.weight, before)


def test_half_of_the_weights_is_not_enough(tmp_path, torchvisions):
    torch.save({key: value for key, value in torchvisions.items() if "layer4" not in key}, tmp_path / "weights.pth")
    with pytest.raises(WeightsError, match=r"layer4\.0\.conv1\.weight"):
        load_body(DeepLabBody(ONES), tmp_path / "weights.pth")
