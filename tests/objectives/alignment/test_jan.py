import math

import pytest
import torch
from objectives.samples import Samples, adversary_fitted, gradients, silent, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Dan, Jan, JanA
from paretoda.objectives.alignment.jan import joint_kernel
from paretoda.objectives.parts.mmd import gaussian, squared_discrepancy, squared_distances


def adversarial(samples, **options):
    return JanA(features=samples.features, classes=samples.classes, **options).double()


def certain(labels, classes=3):
    return 1e3 * functional.one_hot(torch.tensor(labels), classes).double()


def domains(source, source_logits, target, target_logits):
    return source_of(source, source_logits), target_of(target, target_logits)


def test_with_predictions_that_are_all_alike_it_is_dan():
    samples = Samples()
    source, target = samples.batch()
    alike = domains(source.features, torch.ones(9, 3).double(), target.features, torch.ones(21, 3).double())
    for estimator in ("v", "u"):
        found = Jan(6, 3, estimator=estimator)(*alike).item()
        assert found == pytest.approx(Dan(6, 3, estimator=estimator)(*alike).item())


def test_with_features_that_are_all_alike_it_is_the_discrepancy_of_the_predictions():
    samples = Samples()
    source, target = samples.batch()
    found = Jan(6, 3)(*domains(torch.ones(9, 6).double(), source.logits, torch.ones(21, 6).double(), target.logits))
    p = torch.cat([source.logits, target.logits]).softmax(1)
    expected = squared_discrepancy(gaussian(squared_distances(p), 0.92**2), 9, "v")
    assert found.item() == pytest.approx(5 * expected.item())


def test_two_opposite_predictions_are_alike_by_exp_of_minus_1_over_092_squared():
    p = torch.eye(2).double()
    kernel = joint_kernel(torch.zeros(2, 4).double(), p)
    assert kernel[0, 1].item() == pytest.approx(5 * math.exp(-1 / 0.92**2))
    assert kernel[0, 0].item() == 5


def test_domains_that_differ_only_in_what_goes_with_what_are_told_apart():
    """Same features, same predictions, exchanged: a sum of discrepancies would be 0."""
    rows = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    exchanged = domains(rows, certain([0, 1]), rows, certain([1, 0]))
    assert Dan(1, 3)(*exchanged).item() == pytest.approx(0, abs=1e-12)
    assert Jan(1, 3)(*exchanged).item() > 1
    assert Jan(1, 3)(*domains(rows, certain([0, 1]), rows, certain([0, 1]))).item() == pytest.approx(0, abs=1e-12)


def test_encoder_and_head_both_feel_the_predictions():
    samples = Samples()
    source, target = samples.batch()
    for objective in (Jan(6, 3), adversarial(samples)):
        assert not silent(objective(source, target), samples.heads())
        fixed = domains(source.features, source.logits.detach(), target.features, target.logits.detach())
        whole = gradients(objective(source, target), samples.body())
        part = gradients(objective(*fixed), samples.body())
        assert not torch.allclose(whole[0], part[0])


@pytest.mark.parametrize("make", [Jan, JanA])
def test_a_step_of_the_encoder_and_the_head_lowers_it(make):
    samples = Samples()
    objective = make(6, 3).double()
    before = objective(*samples.batch())
    parameters = [*samples.body(), *samples.heads()]
    for parameter, gradient in zip(parameters, gradients(before, parameters), strict=True):
        parameter.data -= 1e-3 * gradient
    assert objective(*samples.batch()).item() < before.item()


@pytest.mark.parametrize("make", [Jan, JanA])
def test_the_strength_grows_with_the_training_or_is_there_at_once(make):
    samples = Samples()
    objective = make(6, 3).double()
    full = objective(*samples.batch()).item()
    objective.advance(0.1)
    assert objective(*samples.batch()).item() == pytest.approx(math.tanh(0.5) * full)
    at_once = make(6, 3, warm_up=False).double()
    at_once.advance(0.0)
    assert at_once(*samples.batch()).item() == pytest.approx(full)


@pytest.mark.parametrize("make", [Jan, JanA])
def test_the_linear_estimator_can_be_chosen_and_others_are_refused(make):
    samples = Samples(source=9, target=9)
    kernel = joint_kernel(*(torch.cat(parts) for parts in _parts(samples)))
    expected = squared_discrepancy(kernel, 9, "linear").item()
    assert make(6, 3, estimator="linear").double()(*samples.batch()).item() == pytest.approx(expected)
    with pytest.raises(ValueError, match="estimator must be"):
        make(6, 3, estimator="w")


def _parts(samples):
    batch = samples.batch()
    return [domain.features for domain in batch], [domain.logits.softmax(1) for domain in batch]


def test_the_maps_begin_as_the_identity():
    samples = Samples()
    objective = adversarial(samples)
    value = objective(*samples.batch()).item()
    assert value == pytest.approx(Jan(6, 3)(*samples.batch()).item())
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(-0.1 * value)
    assert not any(parameter.any() for parameter in objective.parameters())


def test_both_losses_together_train_as_reversal_layers_around_the_maps_do():
    """The encoder lowers what the maps raise, and the maps learn at a tenth of the rate, whatever the strength."""
    samples = Samples()
    objective = adversarial(samples)
    with torch.no_grad():
        for parameter in objective.parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    objective.advance(0.1)
    own, shared = list(objective.parameters()), [*samples.body(), *samples.heads()]
    features, predictions = (torch.cat(parts) for parts in _parts(samples))
    pairs = (objective.of_features, features), (objective.of_predictions, predictions)
    seen = [x @ (torch.eye(len(m.weight)) + m.weight).T + m.bias for m, x in pairs]
    plain = squared_discrepancy(joint_kernel(*seen), 9, "v")
    ours = objective(*samples.batch()) + objective.private_loss(*samples.batch())
    for one, other in zip(gradients(ours, shared), gradients(plain, shared), strict=True):
        torch.testing.assert_close(one, math.tanh(0.5) * other)
    for one, other in zip(gradients(ours, own), gradients(plain, own), strict=True):
        torch.testing.assert_close(one, -0.1 * other)


def test_fitted_maps_find_a_larger_discrepancy():
    samples = Samples()
    objective = adversarial(samples)
    before = objective(*samples.batch()).item()
    adversary_fitted(objective, samples, steps=100, lr=0.01)
    assert objective(*samples.batch()).item() > 1.1 * before
