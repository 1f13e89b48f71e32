"""How the class-wise discriminators are trained and asked."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, adversary_fitted, gradients, silent
from torch.nn import functional

from paretoda.objectives import Tcm
from paretoda.objectives.parts.class_discriminators import (
    balanced_discriminator_loss,
    discriminator_loss,
    released_discriminator_loss,
)


def tcm(samples, **options):
    torch.manual_seed(0)
    return Tcm(features=samples.features, classes=samples.classes, width=8, **options).double()


def target_probability(objective, source, target):
    """q of the target rows, both domains in one batch."""
    scores = objective.discriminators(torch.cat([source.features, target.features]), "batch")
    return 1 - scores[len(source.features) :].sigmoid()


def test_the_loss_of_the_discriminators_is_eq_4():
    samples = Samples()
    objective = tcm(samples)
    source, target = samples.batch()
    q = target_probability(objective, source, target)
    rho = objective._refine(target.logits, q.log()).exp()
    scores = objective.discriminators(torch.cat([source.features, target.features]), "batch")[:9].sigmoid()
    expected = -sum(scores[i, source.labels[i]].log() for i in range(9)) / 9
    expected = expected - sum(rho[i, k] * q[i, k].log() for i in range(21) for k in range(3)) / 21
    assert objective.private_loss(source, target).item() == pytest.approx(expected.item())


def test_weights_of_the_target_are_constants_and_probabilities():
    samples = Samples()
    objective = tcm(samples)
    source, target = samples.batch()
    scores = objective.discriminators(torch.cat([source.features, target.features]).detach(), "batch")
    weights = objective._refine(target.logits, functional.logsigmoid(-scores[9:])).exp().detach()
    constant = discriminator_loss(scores[:9], source.labels, scores[9:], weights)
    own = list(objective.parameters())
    for one, other in zip(
        gradients(objective.private_loss(source, target), own), gradients(constant, own), strict=True
    ):
        torch.testing.assert_close(one, other)
    assert weights.sum(1).tolist() == pytest.approx([1.0] * 21)


def test_a_source_sample_is_shown_to_its_own_class_only():
    scores = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    loss = discriminator_loss(scores, torch.tensor([2, 0, 0, 1]), torch.zeros(2, 3), torch.full((2, 3), 1 / 3))
    felt = torch.autograd.grad(loss, scores)[0] != 0
    assert felt.tolist() == [[False, False, True], [True, False, False], [True, False, False], [False, True, False]]


def random_scores(seed, classes=4):
    """Scores of seven source samples of all classes but the last and of nine target samples, labels and ρ."""
    generator = torch.Generator().manual_seed(seed)
    source, target, z = (torch.randn(n, classes, dtype=torch.float64, generator=generator) for n in (7, 9, 9))
    labels = torch.cat([torch.arange(classes - 1), torch.randint(classes - 1, (8 - classes,), generator=generator)])
    return source, labels, target, (3 * z).softmax(1)


@given(st.integers(0, 200))
def test_the_balanced_loss_is_the_mean_of_what_each_class_pays_for_both_domains(seed):
    source, labels, target, weights = random_scores(seed)
    paid = []
    for k in range(3):
        of_source = [functional.softplus(-score[k]) for score, label in zip(source, labels, strict=True) if label == k]
        of_target = [w[k] * functional.softplus(score[k]) for w, score in zip(weights, target, strict=True)]
        paid.append(sum(of_source) / len(of_source) + sum(of_target) / weights[:, k].sum())
    expected = sum(paid) / 3
    found = balanced_discriminator_loss(source, labels, target, weights)
    assert found.item() == pytest.approx(expected.item())


@given(st.integers(0, 200), st.floats(1e-6, 1))
def test_a_class_that_becomes_rarer_in_the_target_changes_the_balanced_loss_in_nothing(seed, rarer):
    source, labels, target, weights = random_scores(seed)
    fewer = weights * torch.tensor([rarer, 1, 1, 1])
    losses = [balanced_discriminator_loss(source, labels, target, w).item() for w in (weights, fewer)]
    assert losses[0] == pytest.approx(losses[1])


def test_of_classes_that_look_alike_the_balanced_discriminators_know_nothing_and_the_others_their_frequencies():
    """Where both domains' samples of a class are the same, a balanced q is 1/2, that of Eq. 4 the target's share."""
    labels, weights = torch.tensor([0] * 6 + [1] * 2), torch.tensor([[0.5, 0.5]] * 8, dtype=torch.float64)
    for loss, share in ((balanced_discriminator_loss, [0.5, 0.5]), (discriminator_loss, [0.4, 2 / 3])):
        best = (-torch.logit(torch.tensor(share, dtype=torch.float64))).requires_grad_()
        loss(best.expand(8, 2), labels, best.expand(8, 2), weights).backward()
        torch.testing.assert_close(best.grad, torch.zeros(2, dtype=torch.float64))


def test_balanced_and_released_contradict_each_other():
    with pytest.raises(ValueError, match="not balanced"):
        Tcm(features=5, classes=4, balanced=True, released_loss=True)


def test_a_class_without_source_samples_is_not_felt_by_the_balanced_loss():
    source, labels, target, weights = random_scores(0)
    target.requires_grad_()
    balanced_discriminator_loss(source, labels, target, weights).backward()
    assert target.grad.any(0).tolist() == [True, True, True, False]
    none = weights * torch.tensor([0.0, 1, 1, 1])
    assert balanced_discriminator_loss(source, labels, target, none).isfinite()


def test_every_class_with_samples_learns_wherever_they_stand_in_the_batch():
    samples = Samples()
    objective = tcm(samples)
    gradient = gradients(objective.private_loss(*samples.batch()), [objective.discriminators.last])[0]
    assert gradient.flatten(1).any(1).all()


def test_the_released_loss_is_what_the_authors_code_computes():
    """Their loop, with one logit a class instead of two."""
    generator = torch.Generator().manual_seed(0)
    source, target, z = (torch.randn(n, 3, dtype=torch.float64, generator=generator) for n in (4, 5, 5))
    labels = torch.tensor([0, 1, 2, 1])
    weights = z * (1 - target.sigmoid())
    of_source = of_target = 0
    for i in range(3):
        for j in range(4):
            symbol = 1 if labels[j].item() == i else 0
        of_source += torch.mean(symbol * functional.softplus(-source[:, i]))
        of_target += torch.mean(weights[:, i] * functional.softplus(target[:, i]))
    expected = (of_source / 3 + of_target / 3) / 2
    assert released_discriminator_loss(source, labels, target, weights).item() == pytest.approx(expected.item())
    samples = Samples()
    objective = tcm(samples, released_loss=True)
    s, t = samples.batch()
    scores = objective.discriminators(torch.cat([s.features, t.features]), "batch")
    theirs = released_discriminator_loss(scores[:9], s.labels, scores[9:], t.logits * (1 - scores[9:].sigmoid()))
    assert objective.private_loss(s, t).item() == pytest.approx(theirs.item())


@pytest.mark.parametrize(
    "options", [{}, {"light": True}, {"balanced": True}, {"detach": False}, {"released_loss": True, "refine": "logit"}]
)
def test_neither_encoder_nor_head_feels_the_discriminators_loss(options):
    samples = Samples()
    private = tcm(samples, **options).private_loss(*samples.batch())
    assert silent(private, [*samples.body(), *samples.heads()])


def test_the_discriminators_learn_which_domain_a_class_s_samples_are_from():
    samples = Samples()
    objective = adversary_fitted(tcm(samples), samples)
    source, target = samples.batch()
    scores = objective.discriminators(torch.cat([source.features, target.features]), "batch")
    assert (scores[torch.arange(9), source.labels] > 0).all()
    rho = objective._refine(target.logits, functional.logsigmoid(-scores[9:])).exp()
    assert (rho * (scores[9:] < 0)).sum(1).mean() > 0.9


def test_held_out_rows_use_the_running_statistics_and_change_nothing():
    samples = Samples()
    objective = adversary_fitted(tcm(samples), samples, steps=20)
    state = copy.deepcopy(objective.state_dict())
    held_out = samples.held_out()
    assert objective.training
    together = objective.refined(held_out.features, held_out.logits)
    one_by_one = [objective.refined(f[None], z[None]) for f, z in zip(held_out.features, held_out.logits, strict=True)]
    torch.testing.assert_close(together, torch.cat(one_by_one))
    torch.testing.assert_close(together.sum(1), torch.ones(8, dtype=torch.float64))
    assert all(torch.equal(value, state[key]) for key, value in objective.state_dict().items())
    objective.eval()
    torch.testing.assert_close(objective.refined(held_out.features, held_out.logits), together)


def test_running_statistics_move_once_in_a_step():
    samples = Samples()
    objective = tcm(samples)
    norm = objective.discriminators.first_norm
    objective(*samples.batch())
    assert not norm.running_mean.any()
    objective.private_loss(*samples.batch())
    once = norm.running_mean.clone()
    rows = torch.cat([domain.features for domain in samples.batch()])
    hidden = torch.einsum("kwd,nd->nkw", objective.discriminators.first, rows).flatten(1).mean(0)
    torch.testing.assert_close(once, 0.1 * (hidden + objective.discriminators.first_bias.flatten()))


def test_every_discriminator_is_seen_by_torch():
    objective = Tcm(features=5, classes=4, width=6)
    assert sum(parameter.numel() for parameter in objective.parameters()) == 4 * (5 * 6 + 6 * 6 + 6 * 7 + 1)
    assert all(
        value.dtype == torch.float64 for key, value in objective.double().state_dict().items() if "num" not in key
    )
    light = Tcm(features=5, classes=4, width=6, light=True)
    assert sum(parameter.numel() for parameter in light.parameters()) == 5 * 6 + 6 * 6 + 6 * 6 + 4 * 7
