"""EfficientNet-Lite0 for pixels: its resolution, its published weights, what of it learns, and whom it sees."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.errors import WeightsError
from paretoda.models.backbones.efficientnet import efficientnet_lite0
from paretoda.models.segmentation.segmenter import Segmenter, SegmenterArchitecture, make_segmenter, segmenter_groups
from paretoda.models.segmentation.small import HypercolumnBody

FIRST = ("trunk._conv_stem.", "trunk._bn0.", "trunk._blocks.0.", "trunk._blocks.1.", "trunk._blocks.2.")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A file as the published one: the whole network with its classifier, in half precision."""
    torch.manual_seed(1)
    whole = efficientnet_lite0(classes=1000)
    path = tmp_path_factory.mktemp("weights") / "efficientnet-lite0.pth"
    torch.save({key: value.half() for key, value in whole.state_dict().items()}, path)
    return path, whole


@settings(max_examples=12, deadline=None)
@given(height=st.integers(1, 300), width=st.integers(1, 300), channels=st.sampled_from([1, 8, 64]))
def test_the_stride_is_four_rounded_up(height, width, channels):
    with torch.device("meta"):
        lower, last = HypercolumnBody(channels).eval()(torch.empty(1, 3, height, width))
    assert lower.shape == last.shape == (1, channels, -(-height // 4), -(-width // 4))


def test_the_trunk_is_the_published_network_up_to_its_fifth_stage(published):
    path, whole = published
    body = HypercolumnBody()
    body.load(path)
    maps = []
    for i in (2, 4, 10):
        whole._blocks[i].register_forward_hook(lambda _block, _inputs, output: maps.append(output))
    images = torch.randn(2, 3, 40, 48)
    whole.half().float().eval()(images)  # half() once: the file has half of the digits
    found = body.eval().trunk(images)
    assert [tuple(x.shape) for x in found] == [(2, 24, 10, 12), (2, 40, 5, 6), (2, 112, 3, 3)]
    for x, y in zip(found, maps, strict=True):
        torch.testing.assert_close(x, y)


def test_with_weights_the_first_half_learns_no_more_and_all_else_does(published):
    for weights, learns in ((None, True), (published[0], False)):
        model = make_segmenter("efficientnet-lite0", 5, weights=weights)
        assert model.pretrained is (weights is not None)
        features = model.encoder(torch.randn(2, 3, 32, 40))
        (model.head(features) * torch.randn(2, 5, 8, 10)).sum().backward()
        for name, parameter in model.encoder.body.named_parameters():
            wanted = learns or not name.startswith(FIRST)
            assert (parameter.grad is not None and bool(parameter.grad.any())) is wanted, name
        grouped = {id(p) for group in segmenter_groups(model, 0.1) for p in group["params"]}
        assert grouped == {id(p) for p in model.parameters() if p.requires_grad}


def test_batchnorm_follows_the_images_within_some_ten_steps(published):
    body = HypercolumnBody()
    body.load(published[0])
    images = 3 + torch.randn(4, 3, 32, 32)
    for _ in range(60):
        body(images)
    for layer in (body.trunk._bn0, body.trunk._blocks[10]._bn2, body.last[1]):
        seen = []
        hook = layer.register_forward_pre_hook(lambda _layer, inputs, seen=seen: seen.append(inputs[0].detach()))
        body(images)
        hook.remove()
        mean, variance = seen[0].mean((0, 2, 3)), seen[0].var((0, 2, 3))
        torch.testing.assert_close(layer.running_mean, mean, rtol=0.02, atol=0.02 * float(mean.abs().max()))
        torch.testing.assert_close(layer.running_var, variance, rtol=0.02, atol=0.02 * float(variance.max()))


def test_a_file_of_another_network_is_refused_and_changes_nothing(published, tmp_path):
    state = torch.load(published[0])
    path = tmp_path / "other.pth"
    torch.save({key: value for key, value in state.items() if not key.startswith("_blocks.7.")}, path)
    body = HypercolumnBody()
    before = {key: value.clone() for key, value in body.state_dict().items()}
    with pytest.raises(WeightsError, match=r"_blocks\.7"):
        body.load(path)
    assert all(torch.equal(value, before[key]) for key, value in body.state_dict().items())
    assert all(parameter.requires_grad for parameter in body.parameters())


def test_two_levels_give_both_maps_and_channels_may_be_chosen():
    model = Segmenter(SegmenterArchitecture("efficientnet-lite0", 5, levels=2, rates=(1, 2), channels=12))
    features = model.encoder(torch.randn(2, 3, 24, 32))
    assert features.shape == (2, 24, 6, 8)
    assert [tuple(x.shape) for x in model.extra_logits(features)] == [(2, 5, 6, 8)]
