import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, adversary_fitted, gradients, silent, source_of

from paretoda.objectives import Mdd
from paretoda.objectives.alignment.mdd import least_disparity, log_others, margin_disparity


def mdd(samples, **options):
    torch.manual_seed(0)
    return Mdd(features=samples.features, classes=samples.classes, hidden=16, **options).double()


def test_a_uniform_adversary_among_31_classes():
    logits, labels = torch.zeros(3, 31, dtype=torch.float64), torch.tensor([0, 4, 30])
    assert margin_disparity(logits, labels, logits, labels, 4.0).item() == pytest.approx(-13.768739, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 65])
def test_between_equal_domains_the_best_adversary_says_four_fifths(classes):
    assert least_disparity(4.0) == pytest.approx(-2.502012, abs=1e-6)
    labels = torch.tensor([0, 1])

    def disparity(sigma):
        logits = torch.full((2, classes), math.log((1 - sigma) / (classes - 1)), dtype=torch.float64)
        logits[torch.arange(2), labels] = math.log(sigma)
        return margin_disparity(logits, labels, logits, labels, 4.0).item()

    assert disparity(0.8) == pytest.approx(least_disparity(4.0))
    assert max(disparity(0.79), disparity(0.81)) < disparity(0.8)


@given(st.integers(2, 9), st.integers(0, 1000), st.floats(0.1, 8))
def test_the_logarithm_of_the_others_is_that_of_their_sum(classes, seed, scale):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(5, classes, dtype=torch.float64, generator=generator)
    labels = torch.randint(classes, (5,), generator=generator)
    p = logits.softmax(1)
    p[torch.arange(5), labels] = 0
    torch.testing.assert_close(log_others(logits, labels), p.sum(1).log())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("score", [1e4, -1e4])
def test_the_surest_adversary_has_finite_logarithms_and_gradients(score, dtype):
    logits = torch.tensor([[score, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    found = log_others(logits, torch.tensor([0]))
    assert found.item() == pytest.approx(min(math.log(2) - score, 0), rel=1e-4)
    gradient = torch.autograd.grad(found, logits)[0]
    assert gradient[0, 0].item() == pytest.approx(-1 if score > 0 else 0)
    assert gradient.sum().item() == pytest.approx(0, abs=1e-6)


def test_the_formula_of_the_specification():
    samples = Samples()
    objective = mdd(samples, dropout=0.0, margin=3.0)
    source, target = samples.batch()
    one, other = (objective.adversary(domain.features, "batch").softmax(1) for domain in (source, target))
    agreed = one[torch.arange(9), source.logits.argmax(1)].log().mean()
    disputed = (1 - other[torch.arange(21), target.logits.argmax(1)]).log().mean()
    disparity = (3 * agreed + disputed).item()
    assert objective.private_loss(source, target).item() == pytest.approx(-disparity)
    assert objective(source, target).item() == pytest.approx(0.1 * (disparity - least_disparity(3.0)))


def test_the_adversary_learns_the_first_classifiers_labels_not_the_truth():
    samples = Samples()
    objective = mdd(samples, dropout=0.0)
    source, target = samples.batch()
    relabelled = source_of(source.features, source.logits, (source.labels + 1) % 3)
    assert objective.private_loss(relabelled, target).item() == objective.private_loss(source, target).item()
    assert objective(relabelled, target).item() == objective(source, target).item()


def test_labels_are_hard():
    samples = Samples()
    objective = mdd(samples, dropout=0.0)
    source, target = samples.batch()
    sharper = source_of(source.features, 5 * source.logits, source.labels)
    assert objective(sharper, target).item() == objective(source, target).item()


def test_the_heads_get_nothing():
    samples = Samples()
    loss = mdd(samples)(*samples.batch())
    assert silent(loss, samples.heads())
    assert not silent(loss, samples.body())


def test_the_fitted_adversary_finds_a_value_above_zero_and_the_encoder_lowers_it():
    samples = Samples()
    objective = adversary_fitted(mdd(samples, dropout=0.0), samples, steps=300)
    before = objective(*samples.batch())
    assert before.item() > 0
    private = objective.private_loss(*samples.batch()).item()
    for parameter, gradient in zip(samples.body(), gradients(before, samples.body()), strict=True):
        parameter.data -= 1e-3 * gradient
    assert objective(*samples.batch()).item() < before.item()
    assert objective.private_loss(*samples.batch()).item() > private


def test_on_equal_domains_the_fitted_adversary_comes_to_zero():
    samples = Samples(source=9, target=9)
    samples.inputs["target"] = samples.inputs["source"]
    objective = adversary_fitted(mdd(samples, dropout=0.0), samples, steps=600, lr=0.02)
    assert objective(*samples.batch()).item() == pytest.approx(0, abs=1e-3)
    assert objective(*samples.batch()).item() <= 1e-12


def test_the_strength_ends_at_a_tenth_and_the_adversary_does_not_feel_it():
    samples = Samples()
    objective = mdd(samples, dropout=0.0)
    private = objective.private_loss(*samples.batch()).item()
    objective.advance(1.0)
    assert objective.strength == pytest.approx(0.1, rel=1e-3)
    objective.advance(0.1)
    assert objective.strength == pytest.approx(0.0462117)
    objective(*samples.batch())
    assert objective.strength == pytest.approx(0.0462117)
    assert objective.private_loss(*samples.batch()).item() == private


def test_dropout_is_for_training_only():
    samples = Samples()
    objective = mdd(samples)
    assert objective(*samples.batch()).item() != objective(*samples.batch()).item()
    objective.eval()
    assert objective(*samples.batch()).item() == objective(*samples.batch()).item()


@pytest.mark.parametrize("options", [{"classes": 1}, {"classes": 3, "margin": 0.0}])
def test_what_has_no_margin_is_refused(options):
    with pytest.raises(ValueError, match="MDD needs"):
        Mdd(features=4, **options)
