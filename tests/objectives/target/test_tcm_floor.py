"""The floor of log q in Eq. 3: no discriminator rules a class out, and without it nothing changes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, gradients
from objectives.target.test_tcm import target_probability, tcm
from torch.nn import functional

from paretoda.objectives import Tcm
from paretoda.objectives.guide.information import TcmGuide
from paretoda.objectives.parts.class_discriminators import discriminator_loss


def steep(samples, **options):
    """Discriminators that are sure of themselves."""
    objective = tcm(samples, **options)
    with torch.no_grad():
        objective.discriminators.last.mul_(30)
    return objective


def refined_by_hand(logits, q, floor):
    product = logits.softmax(1) * q.clamp(min=math.exp(floor))
    return product / product.sum(1, keepdim=True)


@given(st.integers(0, 100), st.sampled_from([-4.0, -1.0, -0.1]))
def test_the_value_is_that_of_eq_3_and_5_with_the_clamp(seed, floor):
    samples = Samples(seed=seed)
    objective = steep(samples, floor=floor)
    source, target = samples.batch()
    rho = refined_by_hand(target.logits, target_probability(objective, source, target), floor)
    mean = rho.mean(0)
    expected = math.log(3) + (mean * mean.log()).sum() - (rho * rho.clamp(min=1e-300).log()).sum(1).mean()
    assert objective(source, target).item() == pytest.approx(expected.item())


@given(st.integers(0, 100), st.sampled_from([-4.0, -1.0, -0.1, 0.0]))
def test_a_class_keeps_its_share_of_what_the_classifier_gives_it(seed, floor):
    """ρ_k >= e^floor p_k, as Σ p q <= 1."""
    samples = Samples(seed=seed)
    objective = steep(samples, floor=floor)
    _, target = samples.batch()
    with torch.no_grad():
        rho, p = objective.refined(target.features, target.logits), target.logits.softmax(1)
    assert (rho >= math.exp(floor) * p * (1 - 1e-9)).all()
    if floor == 0:
        torch.testing.assert_close(rho, p)


def test_a_class_that_is_ruled_out_without_it():
    samples = Samples()
    _, target = samples.batch()
    plain, held = (tcm(samples, floor=floor) for floor in (None, -4.0))
    for objective in (plain, held):
        with torch.no_grad():
            objective.discriminators.last_bias[0] += 1e3
    found = [objective.refined(target.features, target.logits)[:, 0].max().item() for objective in (plain, held)]
    assert found[0] < 1e-100
    assert found[1] > 1e-3


def test_a_floor_that_nothing_reaches_changes_nothing():
    samples = Samples()
    source, target = samples.batch()
    plain, low = tcm(samples), tcm(samples, floor=-1e6)
    one, other = plain(source, target), low(source, target)
    assert one.item() == other.item()
    for left, right in zip(gradients(one, samples.body()), gradients(other, samples.body()), strict=True):
        assert left.equal(right)
    assert plain.private_loss(source, target).item() == low.private_loss(source, target).item()


def test_the_gradient_is_that_of_the_clamped_values():
    """Attached features are felt through q above the floor, and not where it is held."""
    samples = Samples()
    _, target = samples.batch()
    objective = tcm(samples, floor=-0.7, detach=False).eval()
    features, logits = (tensor.detach().requires_grad_() for tensor in (target.features, target.logits))
    log_q = functional.logsigmoid(-objective.discriminators(features, "running"))
    assert (log_q < -0.7).any()
    assert (log_q > -0.7).any()
    assert torch.autograd.gradcheck(objective.log_refined, (features, logits))
    held = tcm(samples, floor=0.0, detach=False).eval()
    (felt,) = torch.autograd.grad(held.log_refined(features, logits).square().sum(), features)
    assert not felt.any()


def test_discriminators_and_guides_see_the_refined_prediction_with_it():
    samples = Samples()
    source, target = samples.batch()
    objective = steep(samples, floor=-0.5)
    scores = objective.discriminators(torch.cat([source.features, target.features]), "batch").detach()
    weights = refined_by_hand(target.logits, 1 - scores[9:].sigmoid(), -0.5)
    expected = discriminator_loss(scores[:9], source.labels, scores[9:], weights)
    assert objective.private_loss(source, target).item() == pytest.approx(expected.item())
    held_out = samples.held_out()
    plain = steep(samples)
    plain.load_state_dict(objective.state_dict())
    values = [TcmGuide(features=6, classes=3, target_loss=loss)(source, held_out).item() for loss in (objective, plain)]
    assert values[0] != pytest.approx(values[1])


def test_it_is_stored_with_a_model_and_older_files_are_without_it():
    samples = Samples()
    _, target = samples.batch()
    for floor in (None, -0.5):
        objective = tcm(samples, floor=floor)
        settings = objective.settings()
        assert settings.get("floor") == floor
        assert list(settings)[:5] == ["width", "light", "refine", "momentum", "shift"]
        again = Tcm(6, 3, **settings).double()
        again.load_state_dict(objective.state_dict())
        assert again.refined(target.features, target.logits).equal(objective.refined(target.features, target.logits))
    assert "floor" not in tcm(samples).settings()


@pytest.mark.parametrize("options", [{"floor": 0.1}, {"floor": -math.inf}, {"floor": -4.0, "refine": "logit"}])
def test_an_impossible_floor_is_refused(options):
    with pytest.raises(ValueError, match="floor is a logarithm of q"):
        Tcm(4, 3, **options)
