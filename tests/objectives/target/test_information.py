"""Entropy and information of predictions: closed forms, bounds, and logarithms of what underflows."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, source_of, target_of

from paretoda.objectives import Entropy, Information
from paretoda.objectives.target.information import entropies, information, missing_information

SIZES = st.tuples(st.integers(1, 12), st.integers(2, 70))


def certain(labels, classes, scale=1e4):
    """Logits of predictions that have no doubt."""
    return scale * torch.nn.functional.one_hot(torch.as_tensor(labels), classes).double()


def log_p(size, seed, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*size, dtype=torch.float64, generator=generator)).log_softmax(1)


def loss(objective, logits):
    features = torch.zeros(len(logits), 2)
    return objective(source_of(features, logits), target_of(features, logits))


@given(SIZES, st.integers(0, 1000), st.sampled_from([0.1, 1.0, 10.0, 1e3]))
def test_information_is_bounded_by_samples_and_by_classes(size, seed, scale):
    found = information(log_p(size, seed, scale)).item()
    assert -1e-12 <= found <= math.log(min(size)) + 1e-12
    assert missing_information(log_p(size, seed, scale)).item() == pytest.approx(math.log(min(size)) - found)


@given(SIZES, st.integers(0, 1000))
def test_information_is_the_mean_divergence_from_the_marginal(size, seed):
    p = log_p(size, seed).exp()
    expected = (p * (p.log() - p.mean(0).log())).sum(1).mean().item()
    assert information(p.log()).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 65])
def test_the_closed_forms(classes):
    balanced = certain(range(classes), classes)
    assert loss(Information(2, classes), balanced).item() == pytest.approx(0, abs=1e-12)
    assert -information(balanced.log_softmax(1)).item() == pytest.approx(-math.log(classes))
    uniform = torch.zeros(classes + 3, classes)
    assert loss(Information(2, classes), uniform).item() == pytest.approx(math.log(classes), abs=1e-6)
    collapsed = certain([1] * classes, classes)
    assert loss(Information(2, classes), collapsed).item() == pytest.approx(math.log(classes))
    assert loss(Entropy(2, classes), uniform).item() == pytest.approx(math.log(classes), abs=1e-6)
    assert loss(Entropy(2, classes), collapsed).item() == 0
    assert loss(Entropy(2, classes), balanced).item() == 0


def test_a_batch_smaller_than_the_number_of_classes_can_reach_zero():
    assert loss(Information(2, 65), certain([3, 9, 60], 65)).item() == pytest.approx(0, abs=1e-12)
    assert loss(Information(2, 65), torch.zeros(3, 65)).item() == pytest.approx(math.log(3), abs=1e-6)


@given(SIZES, st.integers(0, 100))
def test_the_names_of_the_classes_do_not_matter(size, seed):
    found = log_p(size, seed)
    turned = found[:, torch.randperm(size[1], generator=torch.Generator().manual_seed(seed))]
    assert information(turned).item() == pytest.approx(information(found).item(), abs=1e-12)
    torch.testing.assert_close(entropies(turned), entropies(found))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_that_underflow_are_no_trouble(dtype):
    """0 log 0 of plain probabilities would be not-a-number, and a small constant inside would bend the value."""
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]], dtype=dtype, requires_grad=True)
    for objective in (Information(2, 3), Entropy(2, 3)):
        found = loss(objective, logits)
        assert found.isfinite()
        assert torch.autograd.grad(found, logits)[0].isfinite().all()
    assert loss(Entropy(2, 3), logits).item() == pytest.approx(math.log(2) / 2)


def test_information_is_lowered_by_descent():
    samples = Samples()
    source, target = samples.batch()
    logits = target.logits.detach().requires_grad_()
    for objective in (Information(6, 3), Entropy(6, 3)):
        before = objective(source, target_of(target.features, logits))
        step = torch.autograd.grad(before, logits)[0]
        assert objective(source, target_of(target.features, logits - 0.1 * step)).item() < before.item()


@pytest.mark.parametrize("seed", range(5))
def test_a_prior_is_what_certain_predictions_should_be_as_frequent_as(seed):
    generator = torch.Generator().manual_seed(seed)
    log_p = torch.randn(40, 4, generator=generator, dtype=torch.float64).log_softmax(1)
    prior = torch.rand(4, generator=generator, dtype=torch.float64) + 0.1
    log_prior = (prior / prior.sum()).log()
    p, mean = log_p.exp(), log_p.exp().mean(0)
    expected = (mean * (mean.log() - log_prior)).sum() - (p * log_p).sum(1).mean()
    torch.testing.assert_close(missing_information(log_p, log_prior), expected)
    assert missing_information(log_p, log_prior) > 0
    uniform = torch.full((4,), -math.log(4), dtype=torch.float64)
    torch.testing.assert_close(missing_information(log_p, uniform), math.log(4) - information(log_p))
    counts = torch.tensor([5, 3, 1, 1])
    certain = torch.full((10, 4), -60.0, dtype=torch.float64)
    certain[torch.arange(10), torch.repeat_interleave(torch.arange(4), counts)] = 60.0
    assert missing_information(certain.log_softmax(1), (counts.double() / 10).log()).item() == pytest.approx(
        0, abs=1e-12
    )


def test_a_prior_of_another_size_or_with_a_zero_is_refused():
    for wrong in ([0.5, 0.5], [0.5, 0.5, 0.0]):
        with pytest.raises(ValueError, match="prior must be 3 numbers above 0"):
            Information(4, 3, prior=wrong)
