"""Classifiers by name: their shapes, their start, their learning rates, and their way through a JSON file."""

import json
import logging
import math

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from paretoda.errors import WeightsError
from paretoda.models.backbones import BACKBONES, NAMES, default_backbone, make_backbone
from paretoda.models.backbones.resnet import resnet18
from paretoda.models.classifier import (
    Architecture,
    Classifier,
    describe,
    from_description,
    make_model,
    parameter_groups,
)
from paretoda.types import Model

SHAPES = {"mlp": (20,), "lenet": (1, 28, 28), "cnn": (3, 32, 32)}
SMALL = ["mlp", "lenet", "cnn", "resnet18", "efficientnet-lite0"]


def shape(name):
    return SHAPES.get(name, (3, 64, 64))


@pytest.mark.parametrize("name", SMALL)
def test_features_and_logits_have_the_widths_of_the_architecture(name):
    model = make_model(name, shape(name), 7).eval()
    assert isinstance(model, Model)
    features = model.encoder(torch.randn(2, *shape(name)))
    assert features.shape == (2, model.architecture.width) == (2, 500 if name == "lenet" else 256)
    assert model.head(features).shape == (2, 7)
    assert isinstance(model.head, nn.Linear)


@pytest.mark.parametrize("name", sorted(BACKBONES))
def test_the_table_tells_the_width_of_the_features(name):
    with torch.device("meta"):
        backbone = make_backbone(name, shape(name)).eval()
        assert backbone(torch.empty(1, *shape(name))).shape == (1, BACKBONES[name].width)
    assert len(BACKBONES[name].mean) == len(BACKBONES[name].std) == (3 if BACKBONES[name].photos else 1)
    assert name in NAMES


def test_a_bottleneck_of_zero_is_none():
    assert make_model("cnn", (1, 16, 16), 3, bottleneck=0).head.in_features == 512
    assert make_model("mlp", (9,), 3, bottleneck=0).head.in_features == 512
    assert make_model("lenet", (1, 28, 28), 3, bottleneck=64).head.in_features == 64


def test_the_bottleneck_is_linear_batchnorm_relu():
    layers = make_model("cnn", (1, 16, 16), 3, dropout=0.2).encoder.bottleneck
    assert [type(layer).__name__ for layer in layers] == ["Linear", "BatchNorm1d", "ReLU", "Dropout"]
    plain = Classifier(Architecture("cnn", (1, 16, 16), 3, norm="none")).encoder.bottleneck
    assert [type(layer).__name__ for layer in plain] == ["Linear", "ReLU"]


def test_new_linear_layers_start_as_xavier_with_zero_bias():
    torch.manual_seed(0)
    model = make_model("resnet18", (3, 32, 32), 40, bottleneck=300)
    for layer in (model.encoder.bottleneck[0], model.head):
        assert not layer.bias.any()
        expected = math.sqrt(2 / (layer.in_features + layer.out_features))
        assert layer.weight.std().item() == pytest.approx(expected, rel=0.05)
    assert make_model("lenet", (1, 28, 28), 10).encoder.backbone[8].bias.any()  # a backbone keeps its own start


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ((800,), "mlp"),
        ((1, 28, 28), "cnn"),
        ((3, 63, 200), "cnn"),
        ((3, 64, 64), "resnet50"),
        ((3, 224, 224), "resnet50"),
    ],
)
def test_the_default_follows_the_kind_of_data(sample, name):
    assert default_backbone(sample) == name


@pytest.mark.parametrize("name", SMALL)
def test_a_description_goes_through_json_and_gives_the_same_network(name):
    model = make_model(name, shape(name), 5, bottleneck=32, dropout=0.1).eval()
    again = from_description(json.loads(json.dumps(describe(model)))).eval()
    assert again.architecture == model.architecture
    again.load_state_dict(model.state_dict())
    x = torch.randn(2, *shape(name))
    assert torch.equal(again(x), model(x))


def test_a_strange_description_is_refused():
    good = describe(make_model("mlp", (4,), 2))
    with pytest.raises(ValueError, match="not the description of a model: colour"):
        from_description(good | {"colour": 1})
    with pytest.raises(ValueError, match="backbone, classes unknown or missing"):
        from_description({"input_shape": [4]})


def weights_of_resnet18(folder, suffix=".safetensors"):
    state = {
        key: value.half() if value.is_floating_point() else value for key, value in resnet18().state_dict().items()
    }
    path = folder / f"weights{suffix}"
    if suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return path, state


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_weights_of_a_local_file_become_the_backbones_in_single_precision(tmp_path, suffix):
    path, state = weights_of_resnet18(tmp_path, suffix)
    model = make_model("resnet18", (3, 64, 64), 5, weights=path)
    assert torch.equal(model.encoder.backbone.conv1.weight, state["conv1.weight"].float())
    assert model.pretrained


def test_a_backbone_with_weights_learns_at_a_tenth_of_the_rate(tmp_path):
    path, _ = weights_of_resnet18(tmp_path)
    model = make_model("resnet18", (3, 64, 64), 5, weights=path)
    old, new = parameter_groups(model, 0.02)
    assert (old["lr"], new["lr"]) == (pytest.approx(0.002), 0.02)
    assert {id(p) for p in old["params"]} == {id(p) for p in model.encoder.backbone.parameters()}
    assert len(old["params"]) + len(new["params"]) == len(list(model.parameters()))
    torch.optim.SGD([old, new], momentum=0.9)
    assert parameter_groups(model, 0.02, backbone=0.5)[0]["lr"] == 0.01


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet18"])
def test_without_weights_all_learn_at_one_rate(name):
    model = make_model(name, shape(name), 5)
    (group,) = parameter_groups(model, 0.02)
    assert group["lr"] == 0.02
    assert len(group["params"]) == len(list(model.parameters()))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("resnet5", (3, 64, 64), 5), "no backbone 'resnet5'; did you mean 'resnet50'"),
        (("zzz", (3, 64, 64), 5), "choose from mlp, lenet"),
        (("resnet18", (800,), 5), "reads images .* take 'mlp'"),
        (("lenet", (1, 8, 8), 5), "at least 14 pixels, these have 8x8"),
        (("mlp", (8,), 0), "at least one output"),
    ],
)
def test_a_model_that_cannot_be_gets_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_model(*arguments)


def test_a_wrong_weights_file_gets_a_sentence(tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    path, _ = weights_of_resnet18(tmp_path)
    with pytest.raises(WeightsError, match=r"holds the weights of another model: .*missing"):
        make_model("resnet34", (3, 64, 64), 5, weights=path)
    with pytest.raises(WeightsError, match=r"of another shape: conv1\.weight"):
        make_model("resnet18", (1, 64, 64), 5, weights=path)
    with pytest.raises(ValueError, match="'mlp' has no backbone"):
        make_model("mlp", (9,), 5, weights=path)
    with pytest.raises(FileNotFoundError, match="no file of weights at"):
        make_model("resnet18", (3, 64, 64), 5, weights=tmp_path / "absent.safetensors")
    junk = tmp_path / "junk.safetensors"
    junk.write_bytes(b"not a tensor")
    with pytest.raises(WeightsError, match=r"junk\.safetensors is not a file of tensors written by safetensors"):
        make_model("resnet18", (3, 64, 64), 5, weights=junk)
    with pytest.raises(WeightsError, match=r"read from \.pth, .*, \.safetensors files"):
        make_model("resnet18", (3, 64, 64), 5, weights=tmp_path / "weights.h5")
    with pytest.raises(ValueError, match="no backbone of its own"):
        make_backbone("mlp", (9,))
