"""CLAN: where the classifiers disagree, what that counts, and that their likeness is their own affair."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import silent
from objectives.segmentation.scenes import Scenes
from torch.nn import functional

from paretoda.objectives.segmentation import Clan
from paretoda.objectives.segmentation.clan import disagreement, likeness


def clan(**options):
    torch.manual_seed(0)
    return Clan(6, 4, width=8, **options).double()


def scores_of(objective, domain):
    """The discriminator's answer for every pixel of the map."""
    found = objective.discriminator(domain.logits.softmax(1))
    return functional.interpolate(found, size=(8, 10), mode="bilinear", align_corners=True).squeeze(1)


@given(st.integers(0, 200), st.sampled_from([0.1, 1.0, 30.0]))
def test_disagreement_is_symmetric_and_lies_between_0_and_1(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    one, other = (scale * torch.randn(2, 5, 3, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    found = disagreement(one, other)
    assert found.shape == (2, 3, 4)
    assert ((found >= -1e-12) & (found <= 1)).all()
    torch.testing.assert_close(found, disagreement(other, one))
    assert disagreement(one, one + 3.0).abs().max().item() == pytest.approx(0, abs=1e-12)


def test_certain_of_different_classes_is_1():
    one, other = (1e4 * functional.one_hot(torch.tensor([k]), 3).double().view(1, 3, 1, 1) for k in (0, 2))
    assert disagreement(one, other).item() == pytest.approx(1)


@given(st.integers(0, 200))
def test_likeness_lies_between_0_and_2(seed):
    one, other = torch.randn(2, 3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    assert -1e-12 <= likeness(one, other).item() <= 2 + 1e-12
    assert likeness(one, 3 * one).item() == pytest.approx(2)
    assert likeness(one, -one).item() == pytest.approx(0, abs=1e-12)


def test_where_the_classifiers_agree_a_pixel_counts_the_least():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    same = replace(target, extra_logits=(target.logits / 2, target.logits / 2))
    objective = clan(weight=0.0, strength=1.0)
    plain = functional.softplus(-scores_of(objective, target)).mean().item()
    assert objective(source, same).item() == pytest.approx(0.4 * plain)
    assert objective(source, target).item() > 0.4 * plain


def test_the_formula_and_the_discriminators_loss():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    objective = clan()
    weights = 40 * disagreement(*target.extra_logits) + 0.4
    of_source, of_target = scores_of(objective, source), scores_of(objective, target)
    adversarial = (weights * functional.softplus(-of_target)).mean()
    alike = likeness(*scenes.model.head.classifier_weights())
    assert objective(source, target).item() == pytest.approx((1e-3 * adversarial + 0.02 * alike).item())
    private = (functional.softplus(-of_source).mean() + (weights * functional.softplus(of_target)).mean()) / 2
    assert objective.private_loss(source, target).item() == pytest.approx(private.item())


def test_pre_heating_counts_every_pixel_once_and_the_end_is_damped():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    objective = clan(weight=0.0, strength=1.0)
    whole = objective(source, target).item()
    plain = functional.softplus(-scores_of(objective, target)).mean().item()
    for progress, expected in ((0.0, plain), (0.04, 0.96 * plain), (0.05, 0.95 * whole), (0.8, 0.2 * whole)):
        objective.advance(progress)
        assert objective(source, target).item() == pytest.approx(expected)


def test_likeness_reaches_the_head_alone():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    loss = clan(strength=0.0)(source, target)
    assert silent(loss, scenes.body())
    assert not silent(loss, list(scenes.model.head.parameters()))
    head = scenes.model.head
    head.other.load_state_dict(head.one.state_dict())
    assert clan(strength=0.0)(*scenes.batch()).item() == pytest.approx(0.02 * 2)


def test_the_disagreement_is_felt_unless_detached():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    further = tuple(logits.detach().requires_grad_() for logits in target.extra_logits)
    apart = replace(target, extra_logits=further)
    assert not silent(clan()(source, apart), list(further))
    assert silent(clan(detach=True)(source, apart), list(further))
    assert clan()(source, apart).item() == pytest.approx(clan(detach=True)(source, apart).item())


def test_it_needs_a_head_of_two():
    scenes = Scenes("two classifiers")
    source, target = scenes.batch()
    with pytest.raises(ValueError, match="CLAN needs a head of two classifiers"):
        clan()(replace(source, head=None), target)
    assert math.isfinite(clan(weight=0.0)(replace(source, head=None), target).item())
    with pytest.raises(ValueError, match="reads 3 outputs"):
        clan()(*Scenes().batch())
