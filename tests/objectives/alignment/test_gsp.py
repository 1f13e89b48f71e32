import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, adversary_fitted, gradients, silent, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Gsp
from paretoda.objectives.alignment.gsp import masses, shares, side_losses, similarities


def gsp(samples, **options):
    torch.manual_seed(0)
    return Gsp(features=samples.features, classes=samples.classes, hidden=8, **{"strength": 1.0} | options).double()


def claim(objective, rows, which):
    """Probability of one classifier's classes in the softmax over those of both."""
    logits = objective.classifiers(rows, "batch")
    return torch.cat([logits[0], logits[1]], 1).softmax(1).view(len(rows), 2, -1)[:, which].sum(1)


def test_similarities_lie_between_0_and_1_and_masses_are_degrees():
    rows = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    graph = similarities(rows)
    torch.testing.assert_close(graph, torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]))
    torch.testing.assert_close(masses(graph), torch.tensor([1.5, 2.0, 1.5]) / 5)


@given(st.integers(0, 1000), st.floats(0.1, 100))
def test_a_sample_is_one_classifiers_or_the_others(seed, scale):
    logits = scale * torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(
        (-side_losses(logits, 0)).exp() + (-side_losses(logits, 1)).exp(), torch.ones(4).double()
    )
    assert (side_losses(logits, 0) >= -1e-12).all()


def test_equal_classifiers_cannot_tell():
    logits = torch.randn(1, 4, 3).expand(2, 4, 3)
    torch.testing.assert_close(side_losses(logits, 0), torch.full((4,), math.log(2)))


def test_shares_stay_within_a_class_and_are_whole_or_nothing():
    samples = Samples()
    source, target = samples.batch()
    pseudo = torch.arange(21) % 2  # nobody is of class 2
    coupled = shares(source.features, target.features, source.labels, pseudo, 0.05)
    assert not coupled.requires_grad
    assert (coupled >= 0).all()
    assert not coupled[source.labels.unsqueeze(1) != pseudo].any()
    torch.testing.assert_close(coupled.sum(1), (source.labels != 2).double())


def test_a_copy_of_the_source_is_laid_on_it_sample_by_sample():
    """Equal graphs: with little entropy a sample's image is its copy, wherever that stands in the batch."""
    torch.manual_seed(0)
    features = torch.randn(12, 4, dtype=torch.float64)
    labels, order = torch.arange(12) % 3, torch.randperm(12)
    coupled = shares(features, features[order], labels, labels[order], 0.01)
    images = coupled @ features[order]
    assert (images - features).norm() < 0.1 * features.norm()
    blind = shares(features, features[order], labels, labels[order], 1e6)
    assert (blind @ features[order] - features).norm() > 0.5 * features.norm()


def test_the_formulas_of_the_specification():
    samples = Samples()
    objective = gsp(samples, strength=0.3)
    objective.classifiers.second.last.bias.data[2] = -99  # nobody is thought to be of class 2
    source, target = samples.batch()
    pseudo = objective.classifiers(target.features, "batch")[1].argmax(1)
    coupled = shares(source.features, target.features, source.labels, pseudo, 0.05)
    images, found = coupled @ target.features, coupled.any(1)
    assert 0 < found.sum() < 9
    rows = torch.cat([source.features, target.features])
    unit = rows.var(0, correction=0).sum()
    nodes = (source.features - images)[found].square().sum() / found.sum() / unit
    confused = -claim(objective, images, 0)[found].log().mean() - claim(objective, source.features, 1).log().mean()
    assert objective(source, target).item() == pytest.approx(0.3 * (nodes + confused).item())
    kept, labels = images[found].detach(), source.labels[found]
    learned = [
        functional.cross_entropy(f(rows, "batch"), of)
        for f in (objective.classifiers.first, objective.classifiers.second)
        for rows, of in ((source.features, source.labels), (kept, labels))
    ]
    told = -claim(objective, source.features, 0).log().mean() - claim(objective, kept, 1).log().mean()
    assert objective.private_loss(source, target).item() == pytest.approx((sum(learned) + told).item())


def test_the_encoder_feels_source_and_target_and_the_coupling_is_a_constant(monkeypatch):
    samples = Samples()
    objective = gsp(samples)
    source, target = samples.batch()
    coupled = objective.shares(source, target)
    assert not coupled.requires_grad
    slopes = gradients(objective(source, target), samples.body())
    monkeypatch.setattr(objective, "shares", lambda *_: coupled)
    for one, other in zip(slopes, gradients(objective(source, target), samples.body()), strict=True):
        torch.testing.assert_close(one, other)
    source_part, target_part = gradients(objective(source, target), [source.features, target.features])
    assert source_part.any()
    assert target_part.any()
    assert silent(objective(source, target), samples.heads())


def test_where_every_sample_is_its_image_the_distance_is_nothing():
    samples = Samples()
    objective = gsp(samples)
    source = samples.source()
    twin = target_of(source.features, source.logits)
    objective.shares = lambda *_: torch.eye(9, dtype=torch.float64)
    undecided = 2 * math.log(2)
    objective.classifiers.second.load_state_dict(objective.classifiers.first.state_dict())
    assert objective(source, twin).item() == pytest.approx(undecided)


def test_the_classifiers_claim_their_own_and_the_encoder_confuses_them():
    samples = Samples()
    objective = adversary_fitted(gsp(samples), samples, steps=60, lr=0.03)
    source, target = samples.batch()
    images = objective.shares(source, target) @ target.features
    assert claim(objective, source.features, 0).mean() > 0.7
    assert claim(objective, images, 1).mean() > 0.7
    before = objective(source, target)
    for parameter, gradient in zip(samples.body(), gradients(before, samples.body()), strict=True):
        parameter.data -= 1e-4 * gradient
    assert objective(*samples.batch()).item() < before.item()


def test_a_batch_without_a_common_class_teaches_by_its_samples_alone():
    torch.manual_seed(0)
    objective = Gsp(features=4, classes=3, hidden=8, strength=1.0)
    objective.classifiers.second.last.bias.data[:] = torch.tensor([99.0, 0.0, 0.0])  # all target samples are of class 0
    features = torch.randn(5, 4)
    labels = torch.full((5,), 2)
    source, target = source_of(features, torch.zeros(5, 3), labels), target_of(torch.randn(6, 4), torch.zeros(6, 3))
    told = -claim(objective, features, 1).log().mean().item()
    assert objective(source, target).item() == pytest.approx(told, abs=1e-5)
    assert objective.private_loss(source, target).isfinite()


def test_a_step_makes_one_coupling(monkeypatch):
    samples = Samples()
    objective = gsp(samples)
    source, target = samples.batch()
    asked = []
    whole = objective.shares
    monkeypatch.setattr(objective, "shares", lambda *domains: asked.append(1) or whole(*domains))
    objective(source, target)
    first = objective.private_loss(source, target).item()
    assert len(asked) == 1
    assert objective.private_loss(source, target).item() == pytest.approx(first)  # forgotten, and made anew
    assert len(asked) == 2


def test_a_coupling_needs_entropy():
    with pytest.raises(ValueError, match="entropy"):
        Gsp(features=4, classes=3, entropy=0.0)
