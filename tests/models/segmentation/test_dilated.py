"""The small dilated network: its size, its resolution, its two norms, and how far a pixel reaches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from paretoda.models.segmentation.small import DilatedBlock, DilatedBody


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_it_has_about_150_thousand_parameters_and_64_channels():
    body = DilatedBody()
    assert 145_000 < count(body) < 160_000
    assert body.widths == (64, 64)
    lower, last = body(torch.randn(2, 3, 24, 32))
    assert lower.shape == last.shape == (2, 64, 6, 8)


@settings(max_examples=12, deadline=None)
@given(height=st.integers(1, 300), width=st.integers(1, 300), channels=st.sampled_from([4, 8, 12, 64]))
def test_the_stride_is_four_rounded_up(height, width, channels):
    with torch.device("meta"):
        lower, last = DilatedBody(channels).eval()(torch.empty(1, 3, height, width))
    assert lower.shape == last.shape == (1, channels, -(-height // 4), -(-width // 4))


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_both_norms_have_the_same_parameters_and_all_of_them_learn(norm):
    torch.manual_seed(0)
    body = DilatedBody(12, norm)
    kinds = {type(layer) for layer in body.modules() if isinstance(layer, nn.BatchNorm2d | nn.GroupNorm)}
    assert kinds == {nn.BatchNorm2d if norm == "batch" else nn.GroupNorm}
    assert count(body) == count(DilatedBody(12))
    last = body(torch.randn(2, 3, 16, 20))[1]
    (last * torch.randn_like(last)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in body.parameters())


def test_with_group_norm_an_image_does_not_see_the_others_of_its_batch():
    torch.manual_seed(0)
    images = torch.randn(3, 3, 16, 16)
    for norm, alone in (("group", True), ("batch", False)):
        body = DilatedBody(8, norm)
        assert torch.allclose(body(images)[1][:1], body(images[:1])[1], atol=1e-5) is alone


@pytest.mark.parametrize("dilation", [1, 2, 4])
def test_a_block_reaches_twice_its_dilation(dilation):
    torch.manual_seed(0)
    block = DilatedBlock(4, 4, dilation, "batch").eval()
    x = torch.rand(1, 4, 25, 25, requires_grad=True)
    (block(x)[0, :, 12, 12] * torch.rand(4)).sum().backward()
    rows = x.grad.abs().sum(dim=(0, 1, 3)).nonzero().flatten() - 12
    assert set(rows.tolist()) <= set(range(-2 * dilation, 2 * dilation + 1, dilation))
    assert rows.min() == -2 * dilation
    assert rows.max() == 2 * dilation


def test_a_block_is_its_formula():
    torch.manual_seed(0)
    block = DilatedBlock(4, 8, 2, "batch").eval()
    x = torch.randn(1, 4, 9, 9)
    inner = block.norm2(block.conv2(block.norm1(block.conv1(x)).relu()))
    torch.testing.assert_close(block(x), (inner + block.shortcut(x)).relu())
    assert DilatedBlock(8, 8, 2, "batch").shortcut is None


def test_the_last_map_is_block3_of_the_first():
    body = DilatedBody(8).eval()
    lower, last = body(torch.randn(1, 3, 16, 16))
    torch.testing.assert_close(last, body.block3(lower))


@pytest.mark.parametrize("channels", [0, 2, 6, -4])
def test_odd_channels_are_refused(channels):
    with pytest.raises(ValueError, match="multiple of 4"):
        DilatedBody(channels)


def test_another_norm_is_refused():
    with pytest.raises(ValueError, match="'batch' or 'group'"):
        DilatedBody(8, "layer")
