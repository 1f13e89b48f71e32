import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, gradients, silent
from torch.nn import functional

from paretoda.objectives import Mixup
from paretoda.objectives.target.mixup import draw_shares, label_divergences, mix


def refreshed(samples, **options):
    objective = Mixup(samples.features, samples.classes, **options).double()
    objective.refresh(samples.snapshot())
    return objective


@given(st.integers(1, 8), st.integers(2, 6), st.integers(0, 99))
def test_the_divergence_is_the_cross_entropy_minus_the_entropy_of_the_label(n, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits, labels = torch.randn(2, n, classes, dtype=torch.float64, generator=generator)
    labels = labels.softmax(1)
    found = label_divergences(logits, labels)
    entropy = -(labels * labels.log()).sum(1)
    torch.testing.assert_close(found, functional.cross_entropy(logits, labels, reduction="none") - entropy)
    assert (found >= -1e-12).all()
    assert label_divergences(labels.log(), labels).abs().max() < 1e-12


def test_for_a_certain_label_it_is_the_cross_entropy():
    logits = torch.randn(4, 3, dtype=torch.float64)
    labels = torch.tensor([0, 2, 1, 0])
    found = label_divergences(logits, functional.one_hot(labels, 3).double())
    torch.testing.assert_close(found, functional.cross_entropy(logits, labels, reduction="none"))


def test_the_loss_is_the_divergence_at_the_mixed_features_from_the_mixed_labels(monkeypatch):
    samples = Samples(source=6, target=6)
    objective = refreshed(samples, strength=0.7)
    source, target = samples.batch()
    pairs = torch.arange(6), torch.arange(6).flip(0)
    monkeypatch.setattr(objective, "pair", lambda *_: pairs)
    shares = torch.linspace(0, 1, 6)
    monkeypatch.setattr("torch.distributions.Beta.sample", lambda *_: shares)
    expected = []
    for i, share in enumerate(shares.double()):
        other = 5 - i
        logits = samples.head(share * source.features[i] + (1 - share) * target.features[other])
        label = share * functional.one_hot(source.labels[i], 3) + (1 - share) * target.logits[other].detach().softmax(0)
        expected.append(label_divergences(logits.unsqueeze(0), label.unsqueeze(0)))
    assert objective(source, target).item() == pytest.approx(0.7 * torch.cat(expected).mean().item())


@pytest.mark.parametrize(("source", "target"), [(5, 5), (3, 8), (8, 3), (1, 4), (4, 1)])
def test_every_sample_of_both_domains_is_mixed(source, target):
    samples = Samples(source=source, target=target)
    first, second = refreshed(samples).pair(*samples.batch())
    assert len(first) == len(second) == max(source, target)
    assert set(first.tolist()) == set(range(source))
    assert set(second.tolist()) == set(range(target))


def test_the_pairs_are_random_and_do_not_follow_the_order_of_the_files():
    samples = Samples(source=20, target=20)
    objective = refreshed(samples)
    drawn = []
    for seed in range(200):
        torch.manual_seed(seed)
        first, second = objective.pair(*samples.batch())
        drawn.append(second[first.argsort()])
    meets = torch.stack([functional.one_hot(row, 20) for row in drawn]).double().mean(0)
    assert meets.max() < 0.15  # 1/20 each; folders are sorted by class, and equal places would tell the labels


def test_both_domains_and_the_head_feel_it_and_the_labels_are_constants():
    samples = Samples()
    objective = refreshed(samples)
    source, target = samples.batch()
    loss = objective(source, target)
    assert all(g.any() for g in gradients(loss, [source.features, target.features, *samples.heads()]))
    assert silent(loss, [target.logits])


def test_the_labels_are_those_of_the_last_refresh():
    samples = Samples()
    objective = refreshed(samples)
    torch.manual_seed(0)
    before = objective(*samples.batch()).item()
    objective.predictions.replace(torch.full((21, 3), 1 / 3))
    torch.manual_seed(0)
    assert objective(*samples.batch()).item() != before


def test_a_mixture_of_one_domain_alone_is_its_own_loss(monkeypatch):
    samples = Samples()
    objective = refreshed(samples)
    source, target = samples.batch()
    torch.manual_seed(1)
    first, _ = objective.pair(source, target)
    losses = functional.cross_entropy(source.logits[first], source.labels[first])
    for share, expected in ((1.0, losses.item()), (0.0, 0.0)):  # predictions have not changed since the refresh
        monkeypatch.setattr("torch.distributions.Beta.sample", lambda _, shape, share=share: torch.full(shape, share))
        torch.manual_seed(1)
        assert objective(source, target).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 20.0])
def test_half_of_a_mixture_is_of_the_source_and_its_spread_is_that_of_the_distribution(concentration):
    torch.manual_seed(0)
    shares = draw_shares(20_000, concentration)
    assert shares.mean().item() == pytest.approx(0.5, abs=0.02)
    assert shares.var().item() == pytest.approx(1 / (4 * (2 * concentration + 1)), rel=0.05)


def test_it_waits_for_the_source():
    samples = Samples()
    objective = refreshed(samples, strength=2.0)
    for progress, strength in ((0.0, 0.0), (0.19, 0.0), (0.3, 1.0), (0.4, 2.0), (1.0, 2.0)):
        objective.advance(progress)
        assert objective.strength == pytest.approx(strength)


def test_shares_of_rows():
    one, other = torch.randn(2, 4, 3)
    torch.testing.assert_close(mix(one, other, torch.ones(4)), one)
    torch.testing.assert_close(mix(one, other, torch.zeros(4)), other)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"concentration": 0.05}, "0.1 or more"), ({"strength": -1.0}, "positive"), ({"full": 0.1}, "shares")],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Mixup(4, 3, **options)
