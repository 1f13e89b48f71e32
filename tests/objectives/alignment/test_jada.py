import math

import pytest
import torch
from objectives.samples import Samples, adversary_fitted, gradients, silent
from torch.nn import functional

from paretoda.objectives import Jada
from paretoda.objectives.parts.discriminator import domain_cross_entropy


def jada(samples, **options):
    torch.manual_seed(0)
    sizes = {"features": samples.features, "classes": samples.classes, "hidden": 8, "width": 8}
    return Jada(**sizes, **{"dropout": 0.0} | options).double()


class Reversal(torch.autograd.Function):
    """The layer of the authors' code: identity forward, -λ backward."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


@pytest.mark.parametrize("progress", [0.1, 1.0])
def test_the_sum_of_both_losses_trains_as_the_authors_single_loss_does(progress):
    """CE1 + CE2 + BCE - |p1 - p2| with reversed features, but that our classifiers' errors stay with them."""
    samples = Samples()
    objective = jada(samples)
    objective.advance(progress)
    own = list(objective.parameters())
    ours = objective(*samples.batch()) + objective.private_loss(*samples.batch())
    source, target = samples.batch()
    strength = 2 / (1 + math.exp(-10 * progress)) - 1
    rows = Reversal.apply(torch.cat([source.features, target.features]), strength)
    scores = objective.discriminator(rows, "batch").squeeze(1)
    first, second = objective.classifiers.first, objective.classifiers.second
    errors = [functional.cross_entropy(f(source.features.detach(), "batch"), source.labels) for f in (first, second)]
    one, other = (f(Reversal.apply(target.features, strength), "batch").softmax(1) for f in (first, second))
    theirs = sum(errors) + domain_cross_entropy(scores[:9], scores[9:]) - (one - other).abs().sum() / (21 * 3)
    for a, b in zip(gradients(ours, [*samples.body(), *own]), gradients(theirs, [*samples.body(), *own]), strict=True):
        torch.testing.assert_close(a, b)
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(theirs.item())


def test_an_undecided_discriminator_leaves_the_disagreement_which_is_the_targets_alone():
    samples = Samples()
    objective = jada(samples, dispute=3.0)
    with torch.no_grad():
        objective.discriminator.last.weight.zero_()
        objective.discriminator.last.bias.zero_()
    source, target = samples.batch()
    one, other = objective.classifiers(target.features, "batch").softmax(2)
    loss = objective(source, target)
    assert loss.item() == pytest.approx(3 * (one - other).abs().mean().item())
    assert silent(loss, [source.features])
    assert not silent(loss, [target.features])


def test_identical_classifiers_leave_the_divergence():
    samples = Samples()
    objective = jada(samples)
    objective.classifiers.second.load_state_dict(objective.classifiers.first.state_dict())
    source, target = samples.batch()
    scores = objective.discriminator(torch.cat([source.features, target.features]), "batch").squeeze(1)
    expected = math.log(2) - domain_cross_entropy(scores[:9], scores[9:]).item()
    assert objective(source, target).item() == pytest.approx(expected)


def test_the_adversaries_raise_what_the_encoder_lowers():
    samples = Samples()
    objective = adversary_fitted(jada(samples), samples, steps=40, lr=0.02)
    start = jada(samples)(*samples.batch()).item()
    value = objective(*samples.batch())
    assert value.item() > start + 0.3
    for parameter, gradient in zip(samples.body(), gradients(value, samples.body()), strict=True):
        parameter.data -= 1e-4 * gradient
    assert objective(*samples.batch()).item() < value.item()
    assert silent(value, samples.heads())


def test_the_strength_is_the_encoders_only():
    samples = Samples()
    objective = jada(samples)
    full, private = objective(*samples.batch()).item(), objective.private_loss(*samples.batch()).item()
    objective.advance(0.1)
    assert objective(*samples.batch()).item() == pytest.approx(0.4621172 * full)
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(private)
    at_once = jada(samples, warm_up=False)
    at_once.advance(0.0)
    assert at_once.strength == 1
