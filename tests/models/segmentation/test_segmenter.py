"""Segmenters by name: their shapes, who learns and how fast, and their way through a JSON file and a checkpoint."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from paretoda.maps import resize_maps
from paretoda.models.classifier import describe as describe_classifier
from paretoda.models.classifier import from_description, make_model
from paretoda.models.segmentation.backbones import SEGMENTATION_BACKBONES
from paretoda.models.segmentation.segmenter import (
    Segmenter,
    SegmenterArchitecture,
    describe,
    make_segmenter,
    segmenter_from_description,
    segmenter_groups,
)
from paretoda.training.optimisers import polynomial_decay, set_learning_rates
from paretoda.types import Model

SHAPES = [(1, 1), (2, 1), (1, 2)]
NORMS = ["train", "affine-frozen", "frozen", "group"]


def small(levels=1, classifiers=1, norm="train", channels=8):
    torch.manual_seed(0)
    return Segmenter(SegmenterArchitecture("dilated", 5, levels, classifiers, (1, 2), norm, channels))


def ids(parameters):
    return [id(parameter) for parameter in parameters]


@pytest.mark.parametrize("backbone", SEGMENTATION_BACKBONES)
@pytest.mark.parametrize(("levels", "classifiers"), SHAPES)
def test_features_and_logits_have_the_widths_of_the_architecture(backbone, levels, classifiers):
    with torch.device("meta"):
        model = make_segmenter(backbone, 11, levels=levels, classifiers=classifiers)
        assert isinstance(model, Model)
        images = torch.empty(2, 3, 120, 160)
        features = model.encoder(images)
        size = (16, 21) if backbone.startswith("deeplab") else (30, 40)
        assert features.shape == (2, model.width, *size)
        assert model.head(features).shape == model(images).shape == (2, 11, *size)
        assert [logits.shape for logits in model.extra_logits(features)] == [(2, 11, *size)] * (
            levels + 2 * classifiers - 3
        )
    assert model.width == model.architecture.width == sum(model.architecture.widths)
    assert model.architecture.rates == ((6, 12, 18, 24) if backbone.startswith("deeplab") else (1, 2, 4, 6))


def test_the_published_widths_and_numbers_of_parameters():
    with torch.device("meta"):
        model = make_segmenter("deeplab-resnet101", 19, levels=2)
    counts = [sum(p.numel() for p in part.parameters()) for part in (model.encoder, model.head.main)]
    assert counts == [42_500_160, 1_400_908]
    assert sum(parameter.numel() for parameter in model.head.auxiliary.parameters()) == 700_492
    assert model.architecture.widths == (1024, 2048)
    assert SegmenterArchitecture("deeplab-resnet50", 19).width == 2048
    assert SegmenterArchitecture("dilated", 19).width == 64


@pytest.mark.parametrize(("levels", "classifiers"), SHAPES)
@pytest.mark.parametrize("norm", NORMS)
def test_head_and_encoder_share_nothing_and_are_everything_and_gradients_reach_all_that_learns(
    levels, classifiers, norm
):
    model = small(levels, classifiers, norm)
    encoder, head = ids(model.encoder.parameters()), ids(model.head.parameters())
    assert not set(encoder) & set(head)
    assert sorted(encoder + head) == sorted(ids(model.parameters()))
    features = model.encoder(torch.randn(2, 3, 16, 20))
    outputs = [model.head(features), *model.extra_logits(features)]
    sum((logits * torch.randn_like(logits)).sum() for logits in outputs).backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None and bool(parameter.grad.any())) is parameter.requires_grad, name


def test_the_main_loss_alone_does_not_touch_the_auxiliary_classifier():
    model = small(levels=2)
    model(torch.randn(2, 3, 16, 20)).square().sum().backward()
    assert all(parameter.grad is None for parameter in model.head.auxiliary.parameters())
    assert all(parameter.grad.any() for parameter in [*model.encoder.parameters(), *model.head.main.parameters()])


def test_two_classifiers_predict_by_their_sum():
    model = small(classifiers=2).eval()
    images = torch.randn(2, 3, 16, 20)
    first, second = model.extra_logits(model.encoder(images))
    torch.testing.assert_close(model(images), first + second)
    together = (first + second).softmax(dim=1)
    product = first.softmax(dim=1) * second.softmax(dim=1)
    torch.testing.assert_close(together, product / product.sum(dim=1, keepdim=True))


def test_deeplab_has_no_trainable_batch_norm_by_default_and_the_small_one_has():
    with torch.device("meta"):
        model = make_segmenter("deeplab-resnet50", 3)
        layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert model.architecture.norm == "affine-frozen"
    assert layers
    assert not any(parameter.requires_grad for layer in layers for parameter in layer.parameters())
    assert make_segmenter("dilated", 3).architecture.norm == "train"


def test_of_the_published_network_all_learns_but_its_105344_numbers_of_batch_norm():
    with torch.device("meta"):
        model = make_segmenter("deeplab-resnet101", 19, levels=2)
    assert sum(parameter.numel() for parameter in model.encoder.parameters() if not parameter.requires_grad) == 105_344
    slow, fast = (sum(p.numel() for p in group["params"]) for group in segmenter_groups(model, 2.5e-4))
    assert (slow, fast) == (42_500_160 - 105_344, 1_400_908 + 700_492)


@pytest.mark.parametrize("norm", NORMS)
def test_groups_are_disjoint_and_cover_exactly_what_learns(norm):
    model = small(levels=2, norm=norm)
    encoder, head = segmenter_groups(model, 0.1)
    assert (encoder["name"], head["name"]) == ("encoder", "head")
    both = ids(encoder["params"]) + ids(head["params"])
    assert len(both) == len(set(both))
    assert set(both) == set(ids(p for p in model.parameters() if p.requires_grad))
    assert set(ids(head["params"])) == set(ids(model.head.parameters()))


def test_the_classifiers_of_deeplab_learn_ten_times_as_fast_at_every_step():
    with torch.device("meta"):
        model = make_segmenter("deeplab-resnet50", 3, classifiers=2)
    optimiser = torch.optim.SGD(segmenter_groups(model, 2.5e-4), lr=1.0, foreach=False)
    seen = []
    for step in range(11):
        set_learning_rates(optimiser, polynomial_decay(step / 10))
        slow, fast = (group["lr"] for group in optimiser.param_groups)
        assert fast == pytest.approx(10 * slow)
        seen.append(slow)
    assert seen == pytest.approx([2.5e-4 * (1 - step / 10) ** 0.9 for step in range(11)])
    assert (seen[0], seen[-1]) == (2.5e-4, 0)


def test_the_factor_of_the_small_network_is_one_unless_said_otherwise():
    assert [group["lr"] for group in segmenter_groups(small(), 0.2)] == [0.2, 0.2]
    assert [group["lr"] for group in segmenter_groups(small(), 0.2, head=5)] == [0.2, 1.0]


@pytest.mark.parametrize(("levels", "classifiers"), SHAPES)
@pytest.mark.parametrize("norm", NORMS)
def test_a_checkpoint_gives_the_same_network_back(tmp_path, levels, classifiers, norm):
    model = small(levels, classifiers, norm)
    model(torch.randn(4, 3, 16, 20))
    torch.save(model.state_dict(), tmp_path / "state.pth")
    again = segmenter_from_description(json.loads(json.dumps(describe(model))))
    again.load_state_dict(torch.load(tmp_path / "state.pth", weights_only=True))
    assert again.architecture == model.architecture
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in model.parameters()]
    images = torch.randn(2, 3, 16, 20)
    for mode in (False, True):
        assert torch.equal(model.train(mode)(images), again.train(mode)(images))


def test_the_description_is_plain_values():
    assert describe(small(levels=2)) == {
        "backbone": "dilated",
        "classes": 5,
        "levels": 2,
        "classifiers": 1,
        "rates": [1, 2],
        "norm": "train",
        "channels": 8,
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [({"width": 3}, "width unknown"), ({"backbone": None}, "backbone unknown or missing"), ({"rates": None}, "rates")],
)
def test_strange_descriptions_are_refused(change, words):
    description = {key: value for key, value in (describe(small()) | change).items() if value is not None}
    with pytest.raises(ValueError, match=words):
        segmenter_from_description(description)


def test_segmenters_and_classifiers_are_not_taken_for_each_other():
    with pytest.raises(ValueError, match="not the description of a segmenter"):
        segmenter_from_description(describe_classifier(make_model("cnn", (1, 16, 16), 3)))
    with pytest.raises(ValueError, match="not the description of a model"):
        from_description(describe(small()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"backbone": "dilatd"}, "did you mean 'dilated'"),
        ({"classes": 1}, "at least two classes"),
        ({"levels": 2, "classifiers": 2}, "levels and classifiers"),
        ({"levels": 3}, "levels and classifiers"),
        ({"norm": "affine"}, "affine-frozen"),
        ({"rates": ()}, "rates must be"),
        ({"channels": 6}, "multiple of 4"),
        ({"backbone": "deeplab-resnet50", "channels": 64}, "has its own channels"),
        ({"backbone": "deeplab-resnet50", "norm": "group"}, "has BatchNorm: norm='group' is for 'dilated' only"),
        ({"backbone": "efficientnet-lite0", "norm": "group"}, "has BatchNorm: norm='group' is for 'dilated' only"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    with torch.device("meta"), pytest.raises(ValueError, match=words):
        Segmenter(replace(SegmenterArchitecture("dilated", 5), **change))


def test_frozen_statistics_need_weights(tmp_path):
    with pytest.raises(ValueError, match="give weights"):
        make_segmenter("dilated", 3, norm="frozen")
    body = make_segmenter("dilated", 3).encoder.body
    body(torch.randn(4, 3, 16, 16))
    torch.save(body.state_dict(), tmp_path / "body.pth")
    model = make_segmenter("dilated", 3, norm="frozen", weights=tmp_path / "body.pth")
    assert model.pretrained
    assert not make_segmenter("dilated", 3).pretrained
    images = torch.randn(1, 3, 16, 16)
    assert torch.equal(model.encoder(images), body.eval()(images)[1])


def test_weights_reach_the_body_of_deeplab(tmp_path):
    torch.manual_seed(0)
    saved = make_segmenter("deeplab-resnet50", 3).encoder.body.state_dict()
    torch.save({f"Scale.{key}": value for key, value in saved.items()}, tmp_path / "caffe.pth")
    body = make_segmenter("deeplab-resnet50", 7, levels=2, weights=tmp_path / "caffe.pth").encoder.body
    assert all(torch.equal(value, saved[key]) for key, value in body.state_dict().items())


@settings(max_examples=40, deadline=None)
@given(
    value=st.floats(-1e3, 1e3, width=32),
    size=st.tuples(*[st.integers(1, 30)] * 2),
    old=st.tuples(*[st.integers(1, 9)] * 2),
)
def test_a_constant_map_stays_constant(value, size, old):
    large = resize_maps(torch.full((1, 2, *old), value), size)
    assert large.shape == (1, 2, *size)
    torch.testing.assert_close(large, torch.full_like(large, value))


@settings(max_examples=40, deadline=None)
@given(size=st.tuples(*[st.integers(2, 30)] * 2), old=st.tuples(*[st.integers(2, 9)] * 2))
def test_a_ramp_from_corner_to_corner_stays_one(size, old):
    def ramp(height, width):
        rows, columns = (torch.linspace(0, 1, n, dtype=torch.float64) for n in (height, width))
        return (2 * rows[:, None] - 3 * columns + rows[:, None] * columns)[None, None]

    torch.testing.assert_close(resize_maps(ramp(*old), size), ramp(*size))
