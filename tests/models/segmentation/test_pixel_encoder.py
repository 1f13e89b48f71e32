"""Features are one map or both, and frozen BatchNorm is frozen whatever anybody says."""

import copy

import pytest
import torch
from torch import nn

from paretoda.models.batchnorm import encode, encode_held_out, frozen_statistics
from paretoda.models.segmentation.backbones import PixelEncoder
from paretoda.models.segmentation.small import DilatedBody


def encoder(norm="train", levels=1):
    torch.manual_seed(0)
    body = DilatedBody(8, "group" if norm == "group" else "batch")
    for layer in norms(body):
        nn.init.uniform_(layer.running_mean, -1, 1)
        nn.init.uniform_(layer.running_var, 0.5, 2)
    return PixelEncoder(body, levels, norm)


def norms(module):
    return [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]


def statistics(module):
    return [buffer.clone() for buffer in module.buffers()]


def images(n=3):
    return torch.randn(n, 3, 16, 20, generator=torch.Generator().manual_seed(7))


def test_two_levels_are_both_maps_the_last_one_behind():
    made = encoder(levels=2).eval()
    lower, last = made.body(images())
    features = made(images())
    assert features.shape == (3, 16, 4, 5)
    assert torch.equal(features[:, :8], lower)
    assert torch.equal(features[:, 8:], last)
    assert torch.equal(encoder().eval()(images()), last)


@pytest.mark.parametrize("levels", [1, 2])
def test_features_are_no_view_so_that_the_halves_of_a_batch_share_them_as_their_base(levels):
    source, target = encode(encoder(levels=levels), images(2), images(1), bn="joint")
    assert source._base is target._base is not None
    assert source._base._base is None


@pytest.mark.parametrize("norm", ["train", "group"])
def test_what_is_not_frozen_learns(norm):
    assert all(parameter.requires_grad for parameter in encoder(norm).parameters())


@pytest.mark.parametrize("norm", ["affine-frozen", "frozen"])
def test_no_batch_norm_learns_but_all_convolutions_do(norm):
    made = encoder(norm)
    features = made(images())
    (features * torch.randn_like(features)).sum().backward()
    frozen = {id(parameter) for layer in norms(made) for parameter in layer.parameters()}
    for parameter in made.parameters():
        assert parameter.requires_grad is (id(parameter) not in frozen)
        assert (parameter.grad is None) is (id(parameter) in frozen)
        assert parameter.grad is None or parameter.grad.any()


@pytest.mark.parametrize("norm", ["train", "affine-frozen"])
def test_unfrozen_statistics_are_the_batchs_in_training(norm):
    made = encoder(norm)
    before = statistics(made)
    trained = made(images())
    assert not any(torch.equal(old, new) for old, new in zip(before, statistics(made), strict=True))
    assert not torch.allclose(trained, made.eval()(images()), atol=1e-3)
    assert all(layer.training for layer in norms(made.train()))


def test_frozen_batch_norm_normalises_by_its_running_statistics_and_keeps_them():
    made = encoder("frozen")
    assert made.training
    before = statistics(made)
    expected = encoder("train").eval()(images())
    for mode in (True, False, True):
        made.train(mode)
        assert made.training is made.body.training is mode
        assert not any(layer.training for layer in norms(made))
        torch.testing.assert_close(made(images()), expected)
        torch.testing.assert_close(made(images()[:1]), expected[:1])  # no sample sees another
    assert all(torch.equal(old, new) for old, new in zip(before, statistics(made), strict=True))


def test_frozen_batch_norm_stays_so_in_every_kind_of_forward_of_a_step():
    made = encoder("frozen")
    expected = made(images())
    before = statistics(made)
    for bn in ("joint", "per-domain"):
        source, target = encode(made, images(), images(), bn=bn)
        torch.testing.assert_close(source, expected)
        torch.testing.assert_close(target, expected)
    torch.testing.assert_close(encode_held_out(made, images()), expected)
    with frozen_statistics(made):
        torch.testing.assert_close(made(images()), expected)
    assert all(torch.equal(old, new) for old, new in zip(before, statistics(made), strict=True))


def test_a_frozen_encoder_stays_frozen_inside_other_modules_and_in_copies():
    outer = nn.Sequential(encoder("frozen"))
    for made in (outer, copy.deepcopy(outer)):
        assert not any(layer.training for layer in norms(made.eval().train()))
