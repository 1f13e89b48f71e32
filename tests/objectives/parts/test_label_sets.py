"""Weights of classes and samples: closed forms, equal weights, and when they are computed."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from objectives.samples import Samples

from paretoda.objectives import ALIGNMENTS, GUIDES, SOURCE_LOSSES, TARGET_LOSSES
from paretoda.objectives.parts.label_sets import ClassWeights, KnownWeights, class_weights
from paretoda.objectives.parts.novelty import find_threshold, log_odds, novelties, split_in_two
from paretoda.objectives.parts.weights import weighted_mean
from paretoda.objectives.source.cross_entropy import CrossEntropy
from paretoda.objectives.target.mcc import Mcc
from paretoda.objectives.target.novelty import Novelty
from paretoda.types import Source, Target

TABLES = {"source": SOURCE_LOSSES, "alignment": ALIGNMENTS, "target": TARGET_LOSSES, "guide": GUIDES}
READERS = [
    (kind, name)
    for kind, table in TABLES.items()
    for name, make in table.items()
    if make is not None
    and {"partial", "open"} & set((make.func if isinstance(make, partial) else make).label_sets)
    and name != "novelty"  # it exists for its weights
]
"""Objectives that suit other label sets than closed ones."""


def test_the_weight_of_a_class_is_its_mean_prediction_over_the_largest():
    predictions = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.4, 0.5, 0.1]], dtype=torch.float64)
    found = class_weights(predictions)
    assert torch.allclose(found, torch.tensor([1.2 / 1.5, 1.0, 0.3 / 1.5], dtype=torch.float64))
    logits = predictions.log()
    weights = ClassWeights(3)
    weights.advance(0.5)
    target = Target(torch.zeros(3, 2), logits, torch.arange(3))
    weights.refresh(SimpleNamespace(target=target))
    labels = torch.tensor([2, 0, 1, 2])
    source, weighed = weights.weigh(Source(torch.zeros(4, 2), torch.zeros(4, 3), labels, labels=labels), target)
    assert torch.allclose(source.weights.double(), found[labels], atol=1e-6)
    assert torch.allclose(weighed.class_weights.double(), found, atol=1e-6)


def test_the_source_loss_is_the_weighted_mean_of_its_samples():
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
    labels, weights = torch.tensor([0, 1, 0]), torch.tensor([1.0, 0.5, 0.0])
    source = Source(logits, logits, labels, weights=weights, labels=labels)
    losses = [math.log(1 + math.exp(-2)), math.log(2)]
    expected = (losses[0] + 0.5 * losses[1]) / 1.5
    assert CrossEntropy(2, 2)(source, Target(logits, logits, labels)).item() == pytest.approx(expected)
    assert weighted_mean(logits[:, 0], torch.zeros(3)).item() == 0


def test_an_alignment_ignores_source_samples_of_absent_classes():
    samples = Samples()
    torch.manual_seed(0)
    made = ALIGNMENTS["dann"](features=samples.features, classes=3, hidden=8).double().eval()
    source, target = samples.batch()
    weights = (source.labels != 2).double()
    kept = (weights > 0).nonzero().squeeze(1)
    few = Source(source.features[kept], source.logits[kept], kept, labels=source.labels[kept])
    assert made(replace(source, weights=weights), target).item() == pytest.approx(made(few, target).item())


@pytest.mark.parametrize(("kind", "name"), READERS)
def test_weights_of_one_change_nothing(kind, name):
    samples = Samples()
    torch.manual_seed(0)
    make = TABLES[kind][name]
    objective = make(features=samples.features, classes=samples.classes).double()
    objective.refresh(samples.snapshot())
    source, target = samples.source(), samples.held_out() if kind == "guide" else samples.target()
    ones = torch.ones(len(source.labels)), torch.ones(len(target.index)), torch.ones(samples.classes)
    weighed = replace(source, weights=ones[0]), replace(target, weights=ones[1], class_weights=ones[2])
    assert objective(*weighed).item() == pytest.approx(objective(source, target).item(), rel=1e-12)
    private, other = objective.private_loss(*weighed), objective.private_loss(source, target)
    assert (private is None) == (other is None)
    if private is not None:
        assert private.item() == pytest.approx(other.item(), rel=1e-12)


@pytest.mark.parametrize("name", ["mcc", "entropy", "propagation"])
def test_a_sample_without_weight_has_no_gradient(name):
    samples = Samples()
    objective = TARGET_LOSSES[name](features=samples.features, classes=samples.classes).double()
    objective.refresh(samples.snapshot())
    if name == "propagation":
        objective.trust.fill_(1.0)
        objective.refresh(samples.snapshot())
    target = samples.target()
    logits = target.logits.detach().requires_grad_()
    weights = torch.ones(len(logits))
    weights[3] = 0
    objective(samples.source(), replace(target, logits=logits, weights=weights)).backward()
    size = logits.grad.abs().sum(1)
    assert size[3] < 1e-5 * size.max()


def test_class_confusion_counts_classes_by_their_weights():
    logits = torch.tensor([[3.0, 0.0, -1.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
    y = logits.div(2.5).softmax(1)
    sure = 1 + (y * y.log()).sum(1).exp()
    confusion = [1 - float((sure * y[:, k] ** 2).sum() / (sure * y[:, k]).sum()) for k in range(3)]
    target = Target(logits, logits, torch.arange(3), class_weights=torch.tensor([1.0, 0.5, 0.0]))
    source = Source(logits, logits, torch.arange(3), labels=torch.arange(3))
    expected = (confusion[0] + 0.5 * confusion[1]) / 1.5
    assert Mcc(3, 3)(source, target).item() == pytest.approx(expected)


def test_nothing_is_learned_from_an_untrained_model_and_then_at_once():
    samples = Samples()
    for weights in (ClassWeights(3), KnownWeights()):
        weights.advance(0.05)
        weights.refresh(samples.snapshot())
        assert not weights.learned
        assert not weights.needs_refresh(due=False)
        weights.advance(0.1)
        assert weights.needs_refresh(due=False)
        weights.refresh(samples.snapshot())
        assert weights.learned
        assert not weights.needs_refresh(due=False)


def test_no_target_sample_counts_before_its_novelty_is_known():
    samples, weights = Samples(), KnownWeights()
    source, target = weights.weigh(*samples.batch())
    assert source.weights is None
    assert not target.weights.any()
    assert weights.weigh_guide(target) is target


def test_samples_among_strange_neighbours_look_strange():
    generator = torch.Generator().manual_seed(0)
    near, far = torch.randn(40, 4, generator=generator), torch.randn(40, 4, generator=generator)
    inputs = torch.cat([near + 6 * torch.eye(4)[0], far + 6 * torch.eye(4)[1]])
    logits = torch.zeros(80, 2)
    logits[:40, 0] = 6
    logits[::7, 0] = 6  # single predictions are wrong about both
    logits[3:40:7, 0] = 0
    target = Target(inputs, logits, torch.arange(80))
    weights = KnownWeights()
    weights.advance(0.5)
    weights.refresh(SimpleNamespace(target=target, held_out_target=target, target_inputs=lambda: iter([inputs])))
    _, weighed = weights.weigh(Source(inputs, logits, torch.arange(80), labels=torch.arange(80) % 2), target)
    assert weighed.weights[:40].min() > weighed.weights[40:].max()
    assert weighed.weights[:40].mean() > 0.9
    assert weighed.weights[40:].mean() < 0.1


def test_novelty_reads_only_what_looks_more_new_than_known():
    logits = torch.tensor([[5.0, 0.0], [5.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([0.5, 0.25, 0.0])
    target = Target(logits, logits, torch.arange(3), weights=weights)
    source = Source(logits, logits, torch.arange(3), labels=torch.arange(3) % 2)
    own = -0.5 * (torch.tensor([5.0, 0.0], dtype=torch.float64).log_softmax(0)).sum().item() - math.log(2)
    loss = Novelty(2, 2, strength=1.0)(source, target)
    assert loss.item() == pytest.approx(0.5 * own / 3)
    loss.backward()
    assert not logits.grad[0].any()
    assert logits.grad[1, 0] > 0  # a step lowers the larger logit


def test_the_threshold_lies_between_the_parts_of_a_known_mixture():
    generator = torch.Generator().manual_seed(0)
    low, high = torch.randn(3000, generator=generator) - 4, torch.randn(1500, generator=generator) + 2
    novelty = torch.cat([low, high]).double().sigmoid()
    threshold = find_threshold(novelty)
    assert -2.5 < math.log(threshold / (1 - threshold)) < 0.5
    wrong = (novelty[:3000] > threshold).sum() + (novelty[3000:] <= threshold).sum()
    assert wrong < 0.01 * 4500
    split = split_in_two(log_odds(novelty))
    assert split.low == pytest.approx(-4, abs=0.1)
    assert split.high == pytest.approx(2, abs=0.1)


def test_the_split_is_the_best_of_all():
    values = torch.tensor([0.3, 0.1, 0.9, 0.75, 0.2, 0.8, 0.15])
    found = split_in_two(values)

    def gain(threshold):
        low, high = values[values <= threshold], values[values > threshold]
        return len(low) * len(high) * (high.mean() - low.mean()) ** 2

    assert all(gain(found.threshold) >= gain(other) for other in values.sort().values[:-1].tolist())


@pytest.mark.parametrize("novelty", [torch.full((5,), 0.3), torch.zeros(1)])
def test_samples_that_look_alike_are_all_known(novelty):
    assert not (novelty > find_threshold(novelty) + 1e-9).any()
    split = split_in_two(novelty)
    assert (split.closeness(novelty) == 1).all()


def test_novelty_is_zero_where_a_class_is_certain():
    assert novelties(torch.eye(3)).tolist() == [0, 0, 0]
    assert novelties(torch.full((1, 4), 0.25)).item() == 0.75
