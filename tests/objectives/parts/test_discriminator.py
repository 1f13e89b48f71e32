import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, normalise


def network(seed=0, outputs=1):
    torch.manual_seed(seed)
    return Discriminator(5, 7, outputs).double()


def rows(n=8, seed=1):
    return torch.randn(n, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_undecided_scores_cost_log_2_whatever_the_numbers_of_samples():
    assert domain_cross_entropy(torch.zeros(3), torch.zeros(11)).item() == pytest.approx(math.log(2))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 1000))
def test_it_is_half_the_mean_of_each_domain_with_the_source_as_one(n, m, seed):
    generator = torch.Generator().manual_seed(seed)
    source, target = (3 * torch.randn(k, dtype=torch.float64, generator=generator) for k in (n, m))
    expected = sum(
        functional.binary_cross_entropy(scores.sigmoid(), torch.full_like(scores, label)) / 2
        for scores, label in ((source, 1.0), (target, 0.0))
    )
    assert domain_cross_entropy(source, target).item() == pytest.approx(expected.item())


def test_weights_count_samples_as_often_as_they_say():
    source, target = torch.tensor([1.0, -2.0]), torch.tensor([0.5])
    doubled = domain_cross_entropy(source[[0, 0, 1]], target)
    weighted = domain_cross_entropy(source, target, (torch.tensor([4.0, 2.0]) / 3, torch.ones(1)))
    assert weighted.item() == pytest.approx(doubled.item())


@pytest.mark.parametrize("score", [1e4, -1e4])
def test_the_farthest_scores_have_finite_losses_and_gradients(score):
    source = torch.full((3,), score, requires_grad=True)
    loss = domain_cross_entropy(source, -source)
    assert loss.item() == pytest.approx(max(-score, 0))
    assert torch.autograd.grad(loss, source)[0].isfinite().all()


def test_it_is_the_network_of_the_specification():
    ours = network()
    plain = nn.Sequential(ours.first, ours.first_norm, nn.ReLU(), ours.second, ours.second_norm, nn.ReLU(), ours.last)
    torch.testing.assert_close(ours(rows(), "batch"), plain(rows()))
    plain.eval()
    torch.testing.assert_close(ours(rows(), "running"), plain(rows()))


def test_only_learning_is_remembered_and_once():
    ours, layer = nn.BatchNorm1d(5).double(), nn.BatchNorm1d(5).double()
    before = ours.running_mean.clone()
    normalise(rows(), ours, "batch")
    normalise(rows(), ours, "running")
    assert torch.equal(ours.running_mean, before)
    normalise(rows(), ours, "learn")
    layer(rows())
    torch.testing.assert_close(ours.running_mean, layer.running_mean)
    torch.testing.assert_close(ours.running_var, layer.running_var)


def test_what_is_learned_later_does_not_bend_an_earlier_gradient():
    layer = nn.BatchNorm1d(5).double()
    x = rows().requires_grad_()
    early = normalise(x, layer, "running").square().sum()
    expected = torch.autograd.grad(normalise(x, layer, "running").square().sum(), x)[0]
    normalise(100 * rows(), layer, "learn")
    torch.testing.assert_close(torch.autograd.grad(early, x)[0], expected)


def test_a_single_row_in_all_has_no_statistics():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        network()(rows(1), "batch")
    assert network()(rows(1), "running").shape == (1, 1)


def test_frozen_is_the_same_function_without_gradients_for_its_parameters():
    ours, x = network(), rows().requires_grad_()
    scores = call_frozen(ours, x, "batch")
    torch.testing.assert_close(scores, ours(x, "batch"))
    torch.testing.assert_close(
        torch.autograd.grad(scores.sum(), x, retain_graph=True)[0], torch.autograd.grad(ours(x, "batch").sum(), x)[0]
    )
    scores.sum().backward()
    assert all(parameter.grad is None for parameter in ours.parameters())
    assert all(parameter.requires_grad for parameter in ours.parameters())
