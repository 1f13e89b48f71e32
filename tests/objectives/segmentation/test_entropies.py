"""MinEnt's and FDA's entropies: bounds, closed forms, and pixels whose probabilities underflow."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.segmentation.scenes import Scenes
from torch.nn import functional

from paretoda.objectives.segmentation import FdaEntropy, MinEnt
from paretoda.objectives.segmentation.fda import robust_entropies
from paretoda.objectives.segmentation.minent import missing_shares, pixel_entropies, self_information
from paretoda.types import Target

LOGITS = st.builds(
    lambda seed, classes, scale: (
        scale * torch.randn(2, classes, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    ),
    st.integers(0, 1000),
    st.integers(2, 19),
    st.sampled_from([0.1, 1.0, 10.0, 1e4]),
)


def target_of(logits):
    return Target(logits, logits, torch.arange(len(logits)))


@given(LOGITS)
def test_entropy_lies_between_0_and_1_and_is_the_sum_of_the_information(logits):
    entropy = pixel_entropies(logits)
    assert ((entropy >= 0) & (entropy <= 1 + 1e-12)).all()
    torch.testing.assert_close(entropy, self_information(logits).sum(1))
    oracle = torch.distributions.Categorical(logits=logits.movedim(1, 3).clamp(-1e6, 1e6)).entropy()
    torch.testing.assert_close(entropy, oracle / math.log(logits.shape[1]))


@given(LOGITS, st.integers(0, 100))
def test_the_names_of_the_classes_do_not_matter(logits, seed):
    order = torch.randperm(logits.shape[1], generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(self_information(logits[:, order]), self_information(logits)[:, order])


@given(LOGITS, st.sampled_from([torch.float32, torch.float64]))
def test_the_gradient_of_every_channel_is_finite_also_where_p_is_0(logits, dtype):
    logits = logits.to(dtype).requires_grad_()
    information = self_information(logits)
    cotangent = torch.randn(logits.shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.grad(information, logits, cotangent)[0].isfinite().all()
    most = math.log2(math.e) / (math.e * math.log2(logits.shape[1]))
    assert ((information >= 0) & (information <= most * (1 + 1e-6))).all()


@pytest.mark.parametrize("classes", [2, 11, 19])
def test_certain_is_0_and_uniform_is_1(classes):
    certain = 1e4 * functional.one_hot(torch.arange(classes), classes).float().T.view(1, classes, classes, 1)
    assert pixel_entropies(certain).max().item() == 0
    assert pixel_entropies(torch.zeros(1, classes, 2, 2)).flatten().tolist() == pytest.approx([1] * 4)


@pytest.mark.parametrize("kind", [MinEnt, FdaEntropy])
def test_the_gradient_vanishes_at_uniform_and_at_certain_and_is_finite(kind):
    for logits in (torch.zeros(1, 3, 2, 2), torch.tensor([1e4, -1e4, 0.0]).view(1, 3, 1, 1).repeat(1, 1, 2, 2)):
        logits.requires_grad_()
        gradient = torch.autograd.grad(kind(6, 3, strength=1.0)(None, target_of(logits)), logits)[0]
        assert gradient.isfinite().all()
        assert gradient.abs().max().item() == pytest.approx(0, abs=1e-7)


def test_it_is_a_mean_over_pixels_and_levels_have_their_strengths():
    target = Scenes("two levels").target()
    first, second = (pixel_entropies(logits).mean().item() for logits in (target.logits, target.extra_logits[0]))
    assert MinEnt(6, 4)(None, target).item() == pytest.approx(1e-3 * first + 2e-4 * second)
    tiled = target_of(target.logits.repeat(1, 1, 2, 3))
    assert MinEnt(6, 4)(None, tiled).item() == pytest.approx(1e-3 * first)


def test_enlarged_logits_have_another_entropy():
    target = Scenes().target()
    larger = functional.interpolate(target.logits, size=(32, 40), mode="bilinear", align_corners=True)
    found = MinEnt(6, 4, enlarge=True, strength=1.0)(None, target).item()
    assert found == pytest.approx(pixel_entropies(larger).mean().item())
    with pytest.raises(ValueError, match="enlarge needs the domain's inputs"):
        MinEnt(6, 4, enlarge=True)(None, target_of(target.logits))


def test_classes_below_half_their_share_are_asked_for():
    logits = torch.tensor([0.9, 0.1]).log().view(1, 2, 1, 1).repeat(1, 1, 2, 2)
    assert missing_shares(logits, torch.tensor([0.5, 0.5]), 0.5).item() == pytest.approx(0.15)
    assert missing_shares(logits, torch.tensor([0.9, 0.1]), 0.5).item() == 0
    plain, with_ratios = MinEnt(6, 2, strength=1.0), MinEnt(6, 2, strength=1.0, ratios=[0.5, 0.5])
    gap = with_ratios(None, target_of(logits)) - plain(None, target_of(logits))
    assert gap.item() == pytest.approx(0.15, abs=1e-6)
    with pytest.raises(ValueError, match="2 classes and 3 ratios"):
        MinEnt(6, 2, ratios=[0.2, 0.2, 0.6])


def test_fdas_entropy():
    entropies = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    assert robust_entropies(entropies, 2.0).tolist() == pytest.approx([0, 0.0625, 1], abs=1e-6)
    target = Scenes().target()
    expected = 0.005 * pixel_entropies(target.logits).pow(4).mean().item()
    assert FdaEntropy(6, 4)(None, target).item() == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="eta must be above 0"):
        FdaEntropy(6, 4, eta=0.0)


@given(st.floats(0.05, 0.45))
def test_doubt_counts_more_than_certainty(entropy):
    pair = torch.tensor([entropy, 2 * entropy], dtype=torch.float64, requires_grad=True)
    slopes = torch.autograd.grad(robust_entropies(pair, 2.0).sum(), pair)[0]
    assert slopes[1].item() == pytest.approx(8 * slopes[0].item(), rel=1e-3)
