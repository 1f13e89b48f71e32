import math

import pytest
import torch
from objectives.samples import Samples, adversary_fitted, gradients, silent

from paretoda.objectives import Dann
from paretoda.objectives.alignment.dann import divergence
from paretoda.objectives.parts.discriminator import domain_cross_entropy


def dann(samples, **options):
    torch.manual_seed(0)
    return Dann(features=samples.features, classes=samples.classes, hidden=8, **options).double()


class Reversal(torch.autograd.Function):
    """The layer that DANN's own code uses: identity forward, -λ backward."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def test_an_undecided_discriminator_knows_nothing():
    assert divergence(torch.zeros(4), torch.zeros(3)).item() == pytest.approx(0, abs=1e-7)
    samples = Samples()
    objective = dann(samples)
    with torch.no_grad():
        objective.discriminator.last.weight.zero_()
        objective.discriminator.last.bias.zero_()
    assert objective(*samples.batch()).item() == pytest.approx(0, abs=1e-12)
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(math.log(2))


def test_a_perfect_discriminator_knows_log_2_and_no_more():
    assert divergence(torch.full((4,), 1e4), torch.full((3,), -1e4)).item() == pytest.approx(math.log(2))


def test_the_value_falls_as_the_cross_entropy_rises():
    """Not the accuracy, not the cross-entropy itself."""
    samples = Samples()
    objective = dann(samples)
    private = objective.private_loss(*samples.batch()).item()
    assert objective(*samples.batch()).item() == pytest.approx(math.log(2) - private)


@pytest.mark.parametrize("progress", [0.1, 0.7, 1.0])
def test_the_sum_of_both_losses_trains_as_a_reversal_layer_does(progress):
    samples = Samples()
    objective = dann(samples)
    objective.advance(progress)
    own = list(objective.parameters())
    ours = objective(*samples.batch()) + objective.private_loss(*samples.batch())
    strength = 2 / (1 + math.exp(-10 * progress)) - 1
    source, target = samples.batch()
    rows = Reversal.apply(torch.cat([source.features, target.features]), strength)
    scores = objective.discriminator(rows, "batch").squeeze(1)
    theirs = domain_cross_entropy(scores[:9], scores[9:])
    for one, other in zip(
        gradients(ours, [*samples.body(), *own]), gradients(theirs, [*samples.body(), *own]), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_a_step_of_the_encoder_raises_the_discriminators_cross_entropy():
    samples = Samples()
    objective = adversary_fitted(dann(samples), samples)
    before = objective.private_loss(*samples.batch()).item()
    for parameter, gradient in zip(samples.body(), gradients(objective(*samples.batch()), samples.body()), strict=True):
        parameter.data -= 1e-3 * gradient
    assert objective.private_loss(*samples.batch()).item() > before


def test_the_discriminator_learns_to_tell_the_domains():
    samples = Samples()
    objective = adversary_fitted(dann(samples), samples)
    assert objective.private_loss(*samples.batch()).item() < 0.1
    assert objective(*samples.batch()).item() > 0.5


def test_the_strength_scales_the_encoders_value_and_row_but_not_the_discriminators():
    samples = Samples()
    objective = dann(samples)
    full, private = objective(*samples.batch()), objective.private_loss(*samples.batch()).item()
    objective.advance(0.1)
    weak = objective(*samples.batch())
    assert weak.item() == pytest.approx(0.462117 * full.item(), rel=1e-5)
    for one, other in zip(gradients(weak, samples.body()), gradients(full, samples.body()), strict=True):
        torch.testing.assert_close(one, math.tanh(0.5) * other)
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(private)


def test_only_advance_moves_the_strength():
    samples = Samples()
    objective = dann(samples)
    objective.advance(0.3)
    first = objective.strength
    for _ in range(3):
        objective(*samples.batch())
        objective.private_loss(*samples.batch())
    objective.eval()
    objective(*samples.batch())
    assert objective.strength == first
    at_once = dann(samples, warm_up=False)
    at_once.advance(0.0)
    assert at_once.strength == 1.0


def test_the_head_gets_nothing():
    samples = Samples()
    assert silent(dann(samples)(*samples.batch()), samples.heads())


def test_both_domains_are_normalised_together_and_both_are_learned():
    samples = Samples()
    objective = dann(samples)
    source, target = samples.batch()
    scores = objective.discriminator(torch.cat([source.features, target.features]), "batch").squeeze(1)
    together = domain_cross_entropy(scores[:9], scores[9:]).item()
    assert objective.private_loss(source, target).item() == pytest.approx(together)
    apart = [objective.discriminator(domain.features, "batch").squeeze(1) for domain in (source, target)]
    assert domain_cross_entropy(*apart).item() != pytest.approx(together)


def test_running_statistics_move_once_in_a_step():
    samples = Samples()
    objective = dann(samples)
    norm = objective.discriminator.first_norm
    objective(*samples.batch())
    assert not norm.running_mean.any()
    objective.private_loss(*samples.batch())
    rows = torch.cat([domain.features for domain in samples.batch()])
    torch.testing.assert_close(norm.running_mean, 0.1 * objective.discriminator.first(rows).mean(0))
    objective.eval()
    before = norm.running_mean.clone()
    objective.private_loss(*samples.batch())
    assert torch.equal(norm.running_mean, before)
