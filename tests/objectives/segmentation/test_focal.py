"""The focal loss of the source's pixels: CLAN's formula, its limits, and gradients where p is 1 or 0."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.segmentation.scenes import Scenes
from objectives.segmentation.test_pixel_cross_entropy import drawn

from paretoda.maps import resize_maps
from paretoda.objectives.segmentation import PixelCrossEntropy
from paretoda.objectives.segmentation.pixel_cross_entropy import pixel_cross_entropy
from paretoda.types import IGNORE

WEIGHTS = torch.tensor([0.5, 1.0, 2.0, 0.0], dtype=torch.float64)
FOCAL = st.sampled_from([0.3, 1.0, 2.0, 5.0])


@given(st.integers(0, 100), FOCAL, st.booleans())
def test_it_is_the_formula_pixel_by_pixel(seed, focal, weighted):
    logits, labels = drawn(seed)
    weights = WEIGHTS if weighted else None
    p = resize_maps(logits, (9, 10)).softmax(1).movedim(1, 3)
    total, count = 0.0, 0.0
    for place in (labels != IGNORE).nonzero().tolist():
        label = labels[tuple(place)].item()
        own, weight = p[(*place, label)].item(), WEIGHTS[label].item() if weighted else 1.0
        total -= weight * (1 - own) ** focal * math.log(own)
        count += weight
    assert pixel_cross_entropy(logits, labels, weights, focal).item() == pytest.approx(total / count)


def test_one_pixel_by_hand():
    """p = 3/4, γ = 2: (1/4)² log(4/3)."""
    logits = torch.tensor([3.0, 1.0], dtype=torch.float64).log().view(1, 2, 1, 1)
    loss = pixel_cross_entropy(logits, torch.zeros(1, 1, 1, dtype=torch.int64), focal=2.0)
    assert loss.item() == pytest.approx(math.log(4 / 3) / 16)


@given(st.integers(0, 50), FOCAL, st.booleans())
def test_it_is_below_cross_entropy_and_tends_to_it(seed, focal, weighted):
    logits, labels = drawn(seed)
    weights = WEIGHTS if weighted else None
    plain = pixel_cross_entropy(logits, labels, weights).item()
    assert 0 < pixel_cross_entropy(logits, labels, weights, focal).item() < plain
    assert pixel_cross_entropy(logits, labels, weights, 1e-9).item() == pytest.approx(plain)


@given(st.integers(0, 30), FOCAL)
def test_its_gradient_is_that_of_its_values(seed, focal):
    logits, labels = drawn(seed)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: pixel_cross_entropy(z, labels, WEIGHTS, focal), logits)


@pytest.mark.parametrize("focal", [0.3, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pixels_that_are_surely_right_or_surely_wrong_are_no_trouble(focal, dtype):
    """Where p is 1, nothing is left to learn; where it tends to 0, the gradient is that of cross-entropy."""
    sides = torch.tensor([[1e4, 0.0], [60.0, 0.0], [0.0, 60.0], [0.0, 1e4]], dtype=dtype)
    logits = sides.T.reshape(1, 2, 4, 1).clone().requires_grad_()
    loss = 4 * pixel_cross_entropy(logits, torch.zeros(1, 4, 1, dtype=torch.int64), focal=focal)
    assert loss.item() == pytest.approx(1e4 + 60)
    gradient = torch.autograd.grad(loss, logits)[0][0, 0, :, 0]
    assert gradient.tolist() == pytest.approx([0, 0, -1, -1], abs=1e-6)


@pytest.mark.parametrize("logit", [5.0, 6.0, 7.0, 8.0, 9.0])
def test_small_doubts_are_rounded_no_more_than_the_cross_entropy(logit):
    logits, label = torch.tensor([logit, 0.0]).view(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.int64)
    plain = pixel_cross_entropy(logits, label).item()
    expected = plain * -math.expm1(-plain)
    assert pixel_cross_entropy(logits, label, focal=1.0).item() == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_without_a_label_it_is_zero_and_so_is_its_gradient(weights):
    logits, labels = drawn(0)
    logits.requires_grad_()
    loss = pixel_cross_entropy(logits, torch.full_like(labels, IGNORE), weights, 2.0)
    assert loss.item() == 0
    assert not torch.autograd.grad(loss, logits)[0].any()


def test_ignored_pixels_contribute_nothing():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 4, 9, 10, dtype=torch.float64, generator=generator, requires_grad=True)
    labels = drawn(0)[1]
    gradient = torch.autograd.grad(pixel_cross_entropy(logits, labels, WEIGHTS, 2.0), logits)[0]
    assert not gradient.movedim(1, 3)[labels == IGNORE].any()
    assert gradient.movedim(1, 3)[(labels != IGNORE) & (labels != 3)].any(1).all()


@pytest.mark.parametrize(("kind", "options"), [("two levels", {}), ("two classifiers", {"both": True})])
def test_every_output_has_it_and_without_it_nothing_changes(kind, options):
    source, target = Scenes(kind).batch()
    focal = PixelCrossEntropy(6, 4, focal=2.0, **options)(source, target)
    losses = [pixel_cross_entropy(maps, source.labels, None, 2.0) for maps in (source.logits, *source.extra_logits)]
    expected = losses[1] + losses[2] if options else losses[0] + 0.1 * losses[1]
    assert focal.item() == pytest.approx(expected.item())
    plain = [
        PixelCrossEntropy(6, 4, **given, **options)(source, target) for given in ({}, {"focal": 0.0}, {"focal": 0})
    ]
    assert plain[0].item() == plain[1].item() == plain[2].item()


@pytest.mark.parametrize("focal", [-1.0, math.inf, math.nan])
def test_an_impossible_exponent_is_refused(focal):
    with pytest.raises(ValueError, match="focal must be 0 or more"):
        PixelCrossEntropy(6, 4, focal=focal)
