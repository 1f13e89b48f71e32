"""Our ResNets have torchvision's names, shapes and arithmetic; their weights load whole or not at all."""

import logging
from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d

from paretoda.errors import WeightsError
from paretoda.models.backbones.resnet import BasicBlock, Bottleneck, resnet18, resnet34, resnet50, resnet101, resnet152
from paretoda.models.weights import load_weights

torch.set_num_threads(1)

NETWORKS = [resnet18, resnet34, resnet50, resnet101, resnet152]
PUBLISHED_PARAMETERS = [11_689_512, 21_797_672, 25_557_032, 44_549_160, 60_192_808]

# Written by hand from torchvision's published state dicts.
RESNET18_KEYS = {
    "layer1.0.conv1.weight": (64, 64, 3, 3),
    "layer1.1.bn2.running_var": (64,),
    "layer2.0.conv1.weight": (128, 64, 3, 3),
    "layer2.0.downsample.0.weight": (128, 64, 1, 1),
    "layer2.0.downsample.1.num_batches_tracked": (),
    "layer4.1.conv2.weight": (512, 512, 3, 3),
    "fc.weight": (1000, 512),
}
RESNET50_KEYS = {
    "conv1.weight": (64, 3, 7, 7),
    "bn1.weight": (64,),
    "bn1.bias": (64,),
    "bn1.running_mean": (64,),
    "layer1.0.conv1.weight": (64, 64, 1, 1),
    "layer1.0.downsample.0.weight": (256, 64, 1, 1),
    "layer1.0.downsample.1.running_mean": (256,),
    "layer1.2.conv3.weight": (256, 64, 1, 1),
    "layer2.0.conv1.weight": (128, 256, 1, 1),
    "layer2.0.conv2.weight": (128, 128, 3, 3),
    "layer3.5.bn3.bias": (1024,),
    "layer4.0.downsample.0.weight": (2048, 1024, 1, 1),
    "layer4.2.conv3.weight": (2048, 512, 1, 1),
    "fc.weight": (1000, 2048),
    "fc.bias": (1000,),
}


@pytest.mark.parametrize(("build", "parameters"), list(zip(NETWORKS, PUBLISHED_PARAMETERS, strict=True)))
def test_the_number_of_parameters_is_the_published_one(build, parameters):
    with torch.device("meta"):
        model = build(classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(("build", "keys", "count"), [(resnet18, RESNET18_KEYS, 122), (resnet50, RESNET50_KEYS, 320)])
def test_names_and_shapes_are_torchvisions(build, keys, count):
    with torch.device("meta"):
        state = build(classes=1000).state_dict()
    assert len(state) == count
    assert {key: tuple(state[key].shape) for key in keys} == keys


def test_the_3x3_convolution_of_a_bottleneck_has_the_stride():
    with torch.device("meta"):
        block = resnet50().layer2[0]
    assert (block.conv1.stride, block.conv2.stride, block.downsample[0].stride) == ((1, 1), (2, 2), (2, 2))


@pytest.mark.parametrize(("build", "width"), [(resnet18, 512), (resnet50, 2048)])
def test_an_encoder_returns_features_and_a_classifier_logits(build, width):
    with torch.device("meta"):
        images = torch.empty(3, 3, 64, 64)
        assert build()(images).shape == (3, width)
        assert build().width == width
        assert build(classes=7)(images).shape == (3, 7)
        assert build(classes=7).features(images).shape == (3, width)
        assert build(in_channels=1)(torch.empty(2, 1, 32, 32)).shape == (2, width)


def test_features_are_no_view_so_that_the_halves_of_a_batch_share_them_as_their_base():
    assert resnet18().eval()(torch.zeros(1, 3, 32, 32))._base is None


@pytest.mark.parametrize("block", [BasicBlock, Bottleneck])
def test_a_zero_last_norm_makes_a_block_the_identity(block):
    layer = block(8 * block.expansion, 8)
    nn.init.zeros_(layer.last_norm.weight)
    x = torch.rand(2, 8 * block.expansion, 5, 5)
    torch.testing.assert_close(layer(x.clone()), x, rtol=0, atol=0)


def test_zero_init_residual_sets_the_last_norm_of_every_block_and_no_other():
    model = resnet18(zero_init_residual=True)
    zero = {name for name, tensor in model.named_parameters() if name.endswith("weight") and not tensor.any()}
    assert zero == {f"layer{stage}.{place}.bn2.weight" for stage in range(1, 5) for place in range(2)}


def test_convolutions_start_with_the_variance_of_fan_out():
    weight = resnet18().layer4[1].conv2.weight
    assert weight.std().item() == pytest.approx((2 / (512 * 9)) ** 0.5, rel=0.01)


def test_a_bottleneck_is_its_formula():
    torch.manual_seed(0)
    block = Bottleneck(6, 4, stride=2).eval()
    for name, tensor in block.state_dict().items():
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.5, 1.5) if "running_var" in name else nn.init.normal_(tensor)
    x = torch.randn(3, 6, 8, 8)
    state = block.state_dict()

    def norm(y, name):
        mean, variance, weight, bias = (
            state[f"{name}.{part}"].view(1, -1, 1, 1) for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (y - mean) / torch.sqrt(variance + 1e-5) * weight + bias

    y = norm(conv2d(x, state["conv1.weight"]), "bn1").clamp(min=0)
    y = norm(conv2d(y, state["conv2.weight"], stride=2, padding=1), "bn2").clamp(min=0)
    y = norm(conv2d(y, state["conv3.weight"]), "bn3")
    shortcut = norm(conv2d(x, state["downsample.0.weight"], stride=2), "downsample.1")
    torch.testing.assert_close(block(x), (y + shortcut).clamp(min=0), rtol=1e-4, atol=1e-5)


def test_weights_survive_a_file(tmp_path):
    torch.manual_seed(0)
    model, other = resnet18(classes=5).eval(), resnet18(classes=5).eval()
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    assert load_weights(other, tmp_path / "weights.pth") == ()
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(model(images), other(images))


def test_an_encoder_leaves_out_the_files_classifier_and_says_so(tmp_path, caplog):
    model = resnet18(classes=1000)
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    encoder = resnet18()
    with caplog.at_level(logging.INFO):
        assert load_weights(encoder, str(tmp_path / "weights.pth")) == ("fc.weight", "fc.bias")
    assert "fc.weight, fc.bias not used" in caplog.text
    assert torch.equal(encoder.layer4[1].conv2.weight, model.layer4[1].conv2.weight)


def test_a_file_from_before_the_batch_counters_loads(tmp_path):
    model = resnet18()
    old = OrderedDict((key, value) for key, value in model.state_dict().items() if "num_batches" not in key)
    torch.save(old, tmp_path / "weights.pth")
    other = resnet18()
    load_weights(other, tmp_path / "weights.pth")
    assert torch.equal(other.conv1.weight, model.conv1.weight)


@pytest.mark.parametrize(
    ("stored", "wanted", "words"),
    [
        (resnet34, resnet18, ["not in the model", "layer1.2.conv1.weight"]),
        (resnet18, resnet34, ["missing", "layer1.2.conv1.weight", "more"]),
        (
            lambda: resnet18(classes=9),
            lambda: resnet18(classes=4),
            ["another shape", "fc.weight (9, 512) instead of (4, 512)"],
        ),
        (resnet18, lambda: resnet18(classes=4), ["missing", "fc.weight", "fc.bias"]),
    ],
)
def test_weights_of_another_model_change_nothing_and_the_error_names_keys(tmp_path, stored, wanted, words):
    torch.save(stored().state_dict(), tmp_path / "weights.pth")
    model = wanted()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(WeightsError) as error:
        load_weights(model, tmp_path / "weights.pth")
    assert all(word in str(error.value) for word in words)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_other_files_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "weights.pth").write_bytes(b"not a checkpoint")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(WeightsError, match=r"read from \.pth"):
        load_weights(resnet18(), tmp_path / "weights.h5")
    with pytest.raises(WeightsError, match="not a file of tensors"):
        load_weights(resnet18(), tmp_path / "weights.pth")
    with pytest.raises(WeightsError, match="state dict"):
        load_weights(resnet18(), tmp_path / "list.pth")
    with pytest.raises(FileNotFoundError):
        load_weights(resnet18(), tmp_path / "absent.pth")
