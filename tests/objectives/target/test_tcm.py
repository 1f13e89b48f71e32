import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, gradients, silent, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Tcm
from paretoda.objectives.target.information import information
from paretoda.objectives.target.tcm import bayes, logit_product


def tcm(samples, **options):
    torch.manual_seed(0)
    return Tcm(features=samples.features, classes=samples.classes, width=8, **options).double()


def target_probability(objective, source, target):
    """q of the target rows, both domains in one batch."""
    scores = objective.discriminators(torch.cat([source.features, target.features]), "batch")
    return 1 - scores[len(source.features) :].sigmoid()


def test_the_example_of_the_specification():
    logits, q = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[0.9, 0.1]], dtype=torch.float64)
    assert bayes(logits, q.log()).exp()[0].tolist() == pytest.approx([0.9, 0.1])
    assert logit_product(logits, q.log()).exp()[0].tolist() == pytest.approx([0.5, 0.5])


@given(st.integers(2, 8), st.integers(0, 1000))
def test_refinement_is_bayes_rule(classes, seed):
    generator = torch.Generator().manual_seed(seed)
    z, u = (2 * torch.randn(5, classes, dtype=torch.float64, generator=generator) for _ in range(2))
    product = z.softmax(1) * u.sigmoid()
    torch.testing.assert_close(bayes(z, functional.logsigmoid(u)).exp(), product / product.sum(1, keepdim=True))
    torch.testing.assert_close(logit_product(z, functional.logsigmoid(u)).exp(), (z * u.sigmoid()).softmax(1))
    constant = torch.full_like(z, -1.7)
    torch.testing.assert_close(bayes(z, constant).exp(), z.softmax(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_farthest_logits_and_scores_are_no_trouble(dtype):
    z = torch.tensor([[1e4, -1e4, 0.0], [1e4, 1e4, -1e4]], dtype=dtype, requires_grad=True)
    log_q = functional.logsigmoid(torch.tensor([[-1e4, 1e4, 0.0], [1e4, -1e4, 1e4]], dtype=dtype))
    refined = bayes(z, log_q)
    assert refined.isfinite().all()
    assert refined.exp().sum(1).tolist() == pytest.approx([1, 1])
    assert torch.autograd.grad(information(refined), z)[0].isfinite().all()
    assert refined[1].exp().tolist() == pytest.approx([1, 0, 0])


@pytest.mark.parametrize("light", [False, True])
def test_undecided_discriminators_leave_the_predictions_alone(light):
    samples = Samples()
    objective = tcm(samples, light=light)
    last = objective.discriminators.last
    with torch.no_grad():
        (last.weight if light else last).zero_()
        (last.bias if light else objective.discriminators.last_bias).fill_(0.3)
    source, target = samples.batch()
    plain = math.log(3) - information(target.logits.log_softmax(1)).item()
    assert objective(source, target).item() == pytest.approx(plain)
    torch.testing.assert_close(objective.refined(target.features, target.logits), target.logits.softmax(1))


@pytest.mark.parametrize("classes", [2, 3, 65])
def test_certain_and_balanced_is_zero_and_uniform_is_the_logarithm(classes):
    samples = Samples(classes=classes, target=5)
    objective = tcm(samples)
    with torch.no_grad():
        objective.discriminators.last.zero_()
        objective.discriminators.last_bias.zero_()
    source, target = samples.batch()
    least = min(classes, 5)
    balanced = 1e4 * functional.one_hot(torch.arange(least), classes).double()
    assert objective(source, target_of(target.features[:least], balanced)).item() == pytest.approx(0, abs=1e-12)
    uniform = torch.zeros(5, classes, dtype=torch.float64)
    assert objective(source, target_of(target.features, uniform)).item() == pytest.approx(math.log(least))
    literal = tcm(samples, paper_literal=True)
    literal.load_state_dict(objective.state_dict())
    assert literal(source, target_of(target.features[:least], balanced)).item() == pytest.approx(-math.log(least))
    assert literal(source, target_of(target.features, uniform)).item() == pytest.approx(0)


@given(st.integers(0, 200))
def test_the_shift_makes_it_a_loss_and_changes_no_gradient(seed):
    samples = Samples(seed=seed, target=7, classes=3 + seed % 8)
    shifted, literal = tcm(samples), tcm(samples, paper_literal=True)
    one, other = shifted(*samples.batch()), literal(*samples.batch())
    assert one.item() >= -1e-12
    assert other.item() <= 1e-12
    assert one.item() - other.item() == pytest.approx(math.log(min(7, samples.classes)))
    for left, right in zip(gradients(one, samples.body()), gradients(other, samples.body()), strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("refine", ["bayes", "logit"])
def test_the_formulas_of_the_paper_and_of_the_code(refine):
    """Eq. 3 and 5 with plain probabilities, and softmax(z ⊙ q)."""
    samples = Samples()
    objective = tcm(samples, refine=refine)
    source, target = samples.batch()
    q = target_probability(objective, source, target)
    p = target.logits.softmax(1) * q
    rho = p / p.sum(1, keepdim=True) if refine == "bayes" else (target.logits * q).softmax(1)
    mean = rho.mean(0)
    literal = (mean * mean.log()).sum() - (rho * rho.log()).sum(1).mean()
    assert objective(source, target).item() == pytest.approx((literal + math.log(3)).item())


def test_the_encoder_and_the_head_learn_through_the_predictions_only():
    samples = Samples()
    objective = tcm(samples)
    source, target = samples.batch()
    loss = objective(source, target)
    assert silent(loss, [source.features]), "the discriminators' answers are constants"
    assert not silent(loss, samples.heads())
    logits = target.logits.detach().requires_grad_()
    q = target_probability(objective, source, target).detach()
    direct = math.log(3) - information(bayes(logits, q.log()))
    torch.testing.assert_close(gradients(loss, [target.logits])[0], torch.autograd.grad(direct, logits)[0])


def test_attached_features_are_felt_in_the_discriminators_too():
    samples = Samples()
    source, target = samples.batch()
    loss = tcm(samples, detach=False)(source, target)
    assert loss.item() == pytest.approx(tcm(samples)(source, target).item())
    assert not silent(loss, [source.features])


def test_the_names_of_the_classes_do_not_matter():
    samples = Samples(classes=4)
    objective = tcm(samples)
    source, target = samples.batch()
    order = torch.tensor([2, 0, 3, 1])
    turned = copy.deepcopy(objective)
    with torch.no_grad():
        for name, parameter in turned.discriminators.named_parameters():
            of_class = dict(objective.discriminators.named_parameters())[name].unflatten(0, (4, -1))
            parameter.copy_(of_class[order].flatten(0, 1).view_as(parameter))
    renamed = source_of(source.features, source.logits[:, order], order.argsort()[source.labels])
    other = target_of(target.features, target.logits[:, order])
    assert turned(renamed, other).item() == pytest.approx(objective(source, target).item())
    assert turned.private_loss(renamed, other).item() == pytest.approx(objective.private_loss(source, target).item())


def test_source_and_target_rows_are_normalised_together():
    samples = Samples()
    objective = tcm(samples)
    source, target = samples.batch()
    alone = objective.discriminators(target.features, "batch")
    apart = math.log(3) - information(bayes(target.logits, functional.logsigmoid(-alone)))
    assert objective(source, target).item() != pytest.approx(apart.item(), abs=1e-6)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="refine must be"):
        Tcm(4, 3, refine="other")


def test_one_pass_of_the_discriminators_serves_both_losses():
    samples = Samples(seed=3)
    source, target = samples.batch()
    objective, oracle = tcm(samples).train(), tcm(samples).train()
    calls = []
    objective.discriminators.register_forward_hook(lambda *_: calls.append(1))
    first, private = objective(source, target), objective.private_loss(source, target)
    assert len(calls) == 1
    alone = oracle.private_loss(source, target)  # without a forward pass before it
    torch.testing.assert_close(first, tcm(samples).train()(source, target))
    torch.testing.assert_close(private, alone)
    parameters = [list(each.discriminators.parameters()) for each in (objective, oracle)]
    slopes = [torch.autograd.grad(loss, own) for loss, own in zip((private, alone), parameters, strict=True)]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)
    for (name, one), other in zip(objective.named_buffers(), oracle.buffers(), strict=True):
        torch.testing.assert_close(one, other, msg=name)  # the running statistics have learned alike, once
    objective(source, target)
    assert torch.equal(objective.discriminators.first_norm.running_mean, oracle.discriminators.first_norm.running_mean)


def test_a_copy_of_an_objective_in_the_middle_of_a_step_is_possible():
    samples = Samples(seed=3)
    objective = tcm(samples).train()
    objective(*samples.batch())
    again = copy.deepcopy(objective)
    assert again.private_loss(*samples.batch()).isfinite()
