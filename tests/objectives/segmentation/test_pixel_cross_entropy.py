"""The source's loss: means over labelled pixels, none where there are none, further outputs by their weight."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.segmentation.scenes import Scenes
from torch.nn import functional

from paretoda.maps import resize_maps
from paretoda.objectives.segmentation import PixelCrossEntropy
from paretoda.objectives.segmentation.pixel_cross_entropy import pixel_cross_entropy
from paretoda.types import IGNORE


def drawn(seed, classes=4):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, classes, 3, 4, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, classes, (2, 9, 10), generator=generator)
    return logits, labels.masked_fill(torch.rand(2, 9, 10, generator=generator) < 0.3, IGNORE)


@given(st.integers(0, 100), st.booleans())
def test_it_is_torchs_mean_where_that_is_a_number(seed, weighted):
    logits, labels = drawn(seed)
    weights = torch.tensor([0.5, 1.0, 2.0, 0.0], dtype=torch.float64) if weighted else None
    larger = functional.interpolate(logits, size=(9, 10), mode="bilinear", align_corners=True)
    expected = functional.cross_entropy(larger, labels, weights, ignore_index=IGNORE)
    assert pixel_cross_entropy(logits, labels, weights).item() == pytest.approx(expected.item())


def test_without_a_label_it_is_zero_and_so_is_its_gradient():
    logits, labels = drawn(0)
    for weights in (None, torch.ones(4, dtype=torch.float64)):
        logits.requires_grad_()
        loss = pixel_cross_entropy(logits, torch.full_like(labels, IGNORE), weights)
        assert loss.item() == 0
        assert not torch.autograd.grad(loss, logits)[0].any()


@given(st.integers(0, 50))
def test_logits_of_ignored_pixels_change_nothing(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 4, 9, 10, dtype=torch.float64, generator=generator, requires_grad=True)
    labels = drawn(seed)[1]
    ignored = (labels == IGNORE).unsqueeze(1)
    other = (logits + 5 * ignored * torch.randn(logits.shape, generator=generator)).detach().requires_grad_()
    one, two = pixel_cross_entropy(logits, labels), pixel_cross_entropy(other, labels)
    assert one.item() == pytest.approx(two.item())
    gradient = torch.autograd.grad(one, logits)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(two, other)[0])
    assert not (gradient * ignored).any()


def test_uniform_predictions_cost_the_logarithm_of_the_classes():
    labels = drawn(0)[1]
    assert pixel_cross_entropy(torch.zeros(2, 4, 3, 4), labels).item() == pytest.approx(math.log(4))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))
def test_an_enlarged_constant_is_constant(height, width, larger, wider):
    assert resize_maps(torch.full((1, 2, height, width), 0.7), (larger, wider)).flatten().tolist() == pytest.approx(
        [0.7] * (2 * larger * wider)
    )


def test_further_outputs_count_by_their_weight():
    scenes = Scenes("two levels")
    source, target = scenes.batch()
    first, second = (pixel_cross_entropy(logits, source.labels) for logits in (source.logits, source.extra_logits[0]))
    assert PixelCrossEntropy(6, 4)(source, target).item() == pytest.approx((first + 0.1 * second).item())
    without = PixelCrossEntropy(6, 4, auxiliary=0.0)(source, target)
    assert not torch.autograd.grad(without, source.extra_logits[0])[0].any()


def test_two_classifiers_are_taught_apart():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    one, two = (pixel_cross_entropy(logits, source.labels) for logits in source.extra_logits)
    assert PixelCrossEntropy(6, 4, both=True)(source, target).item() == pytest.approx((one + two).item())
    with pytest.raises(ValueError, match="two classifiers"):
        PixelCrossEntropy(6, 4, both=True)(*Scenes("two levels").batch())


def test_weights_are_as_many_as_classes():
    with pytest.raises(ValueError, match="4 classes and 2 weights"):
        PixelCrossEntropy(6, 4, weights=[1.0, 2.0])
