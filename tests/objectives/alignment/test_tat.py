import pytest
import torch
from objectives.samples import Samples, adversary_fitted, gradients, silent, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Tat
from paretoda.objectives.alignment.tat import climb
from paretoda.objectives.parts.discriminator import domain_cross_entropy


def tat(samples, **options):
    torch.manual_seed(0)
    return Tat(features=samples.features, classes=samples.classes, hidden=8, **options).double()


def error(objective, rows, n=9):
    scores = objective.discriminator(rows, "batch").squeeze(1)
    return domain_cross_entropy(scores[:n], scores[n:])


def test_a_climb_on_a_slope_ends_where_the_pull_is_as_strong():
    """The gain g·x - pull ‖x - x0‖² is largest at x0 + g / (2 pull)."""
    start, slope = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.5, -0.25], [1.0, 0.0]])
    assert torch.equal(climb(start, start, lambda x: (slope * x).sum(), 2.0, 0.1, 0), start)
    once = climb(start, start, lambda x: (slope * x).sum(), 2.0, 0.1, 1)
    torch.testing.assert_close(once, start + 2 * slope)
    top = climb(start, start, lambda x: (slope * x).sum(), 2.0, 0.1, 60)
    torch.testing.assert_close(top, start + slope / 0.2)
    elsewhere = climb(top, start, lambda x: 0 * x.sum(), 2.0, 0.1, 60)
    torch.testing.assert_close(elsewhere, start)


def test_without_a_climb_the_examples_are_the_features():
    samples = Samples()
    objective = tat(samples, climbs=0, entropy=0.0)
    source, target = samples.batch()
    first, second = objective.examples(source, target)
    assert torch.equal(first, source.features)
    assert torch.equal(second, target.features)
    expected = functional.cross_entropy(source.logits, source.labels).item()
    assert objective(source, target).item() == pytest.approx(expected)
    rows = torch.cat([source.features, target.features])
    assert objective.private_loss(source, target).item() == pytest.approx(2 * error(objective, rows).item())


def test_the_discriminator_is_worse_on_the_examples_and_the_head_on_the_sources():
    samples = Samples()
    objective = adversary_fitted(tat(samples, climbs=0), samples, steps=40, lr=0.02)
    objective.climbs = 20
    source, target = samples.batch()
    first, second = objective.examples(source, target)
    rows = torch.cat([source.features, target.features])
    assert error(objective, torch.cat([source.features, second])) > error(objective, rows) + 0.1
    objective.source_rate = 0.0  # the discriminator's part alone
    misled, _ = objective.examples(source, target)
    assert error(objective, torch.cat([misled, second])) > error(objective, rows) + 0.1
    harder = functional.cross_entropy(source.logits_of(first), source.labels)
    assert harder > functional.cross_entropy(source.logits_of(misled), source.labels) + 1
    assert (second - target.features).norm(dim=1).min() > 0


def test_the_formula_of_the_specification():
    samples = Samples()
    objective = tat(samples, entropy=0.3)
    source, target = samples.batch()
    first, second = objective.examples(source, target)
    p, moved = target.logits.softmax(1), samples.head(second).softmax(1)
    right = -samples.head(first).log_softmax(1)[torch.arange(9), source.labels].mean()
    constant = (moved - p).square().sum() / 21
    expected = right + constant - 0.3 * (p * p.log()).sum() / 21
    assert objective(source, target).item() == pytest.approx(expected.item())
    rows = torch.cat([source.features, target.features])
    both = error(objective, rows) + error(objective, torch.cat([first, second]))
    assert objective.private_loss(source, target).item() == pytest.approx(both.item())


def test_an_example_is_a_feature_plus_a_constant():
    samples = Samples()
    objective = tat(samples)
    source, target = samples.batch()
    first, second = objective.examples(source, target)
    assert not first.requires_grad
    away, off = (first - source.features).detach(), (second - target.features).detach()
    changes = (samples.head(target.features + off).softmax(1) - target.logits.softmax(1)).square().sum(1).mean()
    entropy = -(target.logits.softmax(1) * target.logits.log_softmax(1)).sum(1).mean()
    plain = functional.cross_entropy(samples.head(source.features + away), source.labels) + changes + 0.1 * entropy
    trained = [*samples.body(), *samples.heads()]
    for one, other in zip(gradients(objective(source, target), trained), gradients(plain, trained), strict=True):
        torch.testing.assert_close(one, other)


def test_making_examples_leaves_no_gradient_anywhere():
    samples = Samples()
    objective = tat(samples)
    objective.examples(*samples.batch())
    assert all(p.grad is None for p in [*samples.body(), *samples.heads(), *objective.parameters()])


def test_the_authors_code_moves_by_the_mean_sums_the_changes_and_teaches_nothing_by_examples():
    samples = Samples()
    ours, theirs = tat(samples), tat(samples, released=True)
    source, target = samples.batch()
    one, other = ours.examples(source, target)[1], theirs.examples(source, target)[1]
    assert (other - target.features).norm() < 0.3 * (one - target.features).norm()
    first, second = theirs.examples(source, target)
    changes = (samples.head(second).softmax(1) - target.logits.softmax(1)).square().sum()
    entropy = -(target.logits.softmax(1) * target.logits.log_softmax(1)).sum(1).mean()
    expected = functional.cross_entropy(samples.head(first), source.labels) + changes + 0.1 * entropy
    assert theirs(source, target).item() == pytest.approx(expected.item())
    own, rows = list(theirs.parameters()), torch.cat([source.features, target.features]).detach()
    plain = gradients(error(theirs, rows), own)
    for a, b in zip(gradients(theirs.private_loss(source, target), own), plain, strict=True):
        torch.testing.assert_close(a, b)
    assert not silent(ours.private_loss(source, target) - error(ours, rows), list(ours.parameters()))


def test_without_a_head_one_sentence_says_what_to_do():
    features, logits = torch.randn(3, 4), torch.randn(3, 3)
    objective = Tat(features=4, classes=3, hidden=8)
    with pytest.raises(ValueError, match="give Source and Target their `head`"):
        objective(source_of(features, logits), target_of(features, logits))


def test_steps_that_would_run_away_are_refused():
    with pytest.raises(ValueError, match="below 1"):
        Tat(features=4, classes=3, rate=10.0)
