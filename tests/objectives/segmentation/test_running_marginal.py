"""The running mean prediction: its value counts, the gradient is the batch's, and only training is remembered."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, gradients, source_of, target_of

from paretoda.objectives import Information, Tcm
from paretoda.objectives.target.information import RunningMarginal, entropies, information


def logits(seed, rows=6, classes=4, scale=2.0):
    return scale * torch.randn(rows, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def batch(found):
    features = torch.zeros(len(found), 2, dtype=torch.float64)
    return source_of(features, found), target_of(features, found)


@given(st.integers(0, 200), st.floats(0.05, 0.99))
def test_the_value_is_that_of_the_mixed_marginal(seed, momentum):
    objective = Information(2, 4, momentum=momentum).double()
    before = logits(seed + 1000).softmax(1)
    objective.private_loss(*batch(logits(seed + 1000)))
    running = momentum * torch.full((4,), 0.25, dtype=torch.float64) + (1 - momentum) * before.mean(0)
    torch.testing.assert_close(objective.marginal.probabilities, running)
    log_p = logits(seed).log_softmax(1)
    mixed = momentum * running + (1 - momentum) * log_p.exp().mean(0)
    expected = math.log(4) + (mixed * mixed.log()).sum() + entropies(log_p).mean()
    loss = objective(*batch(logits(seed))).item()
    assert loss == pytest.approx(expected.item())
    assert -1e-12 <= loss <= 2 * math.log(4)


@given(st.integers(0, 200))
def test_the_gradient_is_that_of_the_batchs_own_mean(seed):
    """d/dm of -Σ M log M is -(log M + 1), handed to the batch's m without the factor 1 - momentum."""
    objective = Information(2, 4, momentum=0.9).double()
    found = logits(seed).requires_grad_()
    loss = objective(*batch(found))
    log_p = found.log_softmax(1)
    own = log_p.exp().mean(0)
    mixed = (0.9 * 0.25 + 0.1 * own).detach()
    expected = ((mixed.log() + 1) * own).sum() + entropies(log_p).mean()
    torch.testing.assert_close(torch.autograd.grad(loss, found)[0], torch.autograd.grad(expected, found)[0])


def test_it_settles_on_the_batch_that_comes_again_and_again():
    objective = Information(2, 4, momentum=0.9).double()
    found = logits(3)
    for _ in range(400):
        assert objective.private_loss(*batch(found)) is None
    plain = math.log(4) - information(found.log_softmax(1))
    assert objective(*batch(found)).item() == pytest.approx(plain.item())


def test_one_image_after_another_of_one_class_each_is_no_collapse():
    """Each batch alone carries no information; over many batches all classes are there."""
    certain = [1e3 * torch.nn.functional.one_hot(torch.full((5,), k), 4).double() for k in range(4)]
    objective = Information(2, 4, momentum=0.99).double()
    for step in range(2000):
        objective.private_loss(*batch(certain[step % 4]))
    assert objective(*batch(certain[0])).item() < 0.01
    assert Information(2, 4)(*batch(certain[0])).item() == pytest.approx(math.log(4))


def test_forward_and_evaluation_remember_nothing():
    objective = Information(2, 4, momentum=0.5).double()
    objective(*batch(logits(0)))
    objective.eval().private_loss(*batch(logits(0)))
    assert objective.marginal.probabilities.tolist() == [0.25] * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_that_vanished_is_no_trouble(dtype):
    objective = Information(2, 3, momentum=0.5).to(dtype)
    found = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype, requires_grad=True)
    for _ in range(1200):
        objective.private_loss(*batch(found.detach()))
    loss = objective(*batch(found))
    assert loss.isfinite()
    assert torch.autograd.grad(loss, found)[0].isfinite().all()


def test_tcm_keeps_the_mean_of_its_refined_predictions():
    samples = Samples()
    torch.manual_seed(0)
    objective = Tcm(6, 3, width=8, momentum=0.8).double()
    source, target = samples.batch()
    scores = objective.discriminators(torch.cat([source.features, target.features]), "batch")[9:]
    rho = target.logits.softmax(1) * (1 - scores.sigmoid())
    own = (rho / rho.sum(1, keepdim=True)).mean(0)
    loss = objective(source, target)
    mixed = 0.8 / 3 + 0.2 * own
    expected = math.log(3) + (mixed * mixed.log()).sum() + entropies((rho / rho.sum(1, keepdim=True)).log()).mean()
    assert loss.item() == pytest.approx(expected.item())
    objective.private_loss(source, target)
    torch.testing.assert_close(objective.marginal.probabilities, mixed.detach())
    literal = Tcm(6, 3, width=8, momentum=0.8, paper_literal=True).double()
    literal.load_state_dict(objective.state_dict())
    one, other = (part(*samples.batch()) for part in (objective, literal))
    assert one.item() - other.item() == pytest.approx(math.log(3))
    for left, right in zip(gradients(one, samples.body()), gradients(other, samples.body()), strict=True):
        torch.testing.assert_close(left, right)


def test_settings_rebuild_what_the_state_fits():
    for momentum in (0.0, 0.8):
        objective = Tcm(6, 3, width=8, light=True, momentum=momentum)
        Tcm(6, 3, **objective.settings()).load_state_dict(objective.state_dict())


def test_without_momentum_nothing_is_kept():
    assert not list(Information(2, 3).state_dict())
    assert not [key for key in Tcm(6, 3, width=8).state_dict() if "marginal" in key]
    for momentum in (-0.1, 1.0):
        with pytest.raises(ValueError, match=r"momentum must lie in 0..1"):
            RunningMarginal(3, momentum)
