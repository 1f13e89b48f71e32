import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, silent
from torch.nn import functional

from paretoda.objectives import Centroids
from paretoda.objectives.target.centroids import label_by_centroids


def refreshed(samples, **options):
    objective = Centroids(samples.features, samples.classes, **options).double()
    objective.refresh(samples.snapshot())
    return objective


def label_slowly(features, predictions):
    """The two rounds of SHOT, one sample and one class at a time."""
    rows = [np.append(row, 1.0) / np.linalg.norm(np.append(row, 1.0)) for row in features]
    classes = [k for k in range(predictions.shape[1]) if any(p.argmax() == k for p in predictions)]

    def nearest(centroids):
        return [
            max(centroids, key=lambda k: row @ centroids[k] / max(np.linalg.norm(centroids[k]), 1e-12)) for row in rows
        ]

    first = {k: sum(p[k] * row for p, row in zip(predictions, rows, strict=True)) for k in classes}
    labels = nearest(first)
    second = {k: sum(row for row, label in zip(rows, labels, strict=True) if label == k) for k in set(labels)}
    return nearest(second)


@given(st.integers(1, 30), st.integers(2, 6), st.integers(1, 5), st.integers(0, 999))
def test_labels_are_those_of_the_two_rounds_by_hand(n, classes, width, seed):
    rng = np.random.default_rng(seed)
    features, logits = rng.normal(size=(n, width)), 3 * rng.normal(size=(n, classes))
    predictions = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = label_by_centroids(torch.from_numpy(features), torch.from_numpy(predictions))
    assert found.tolist() == label_slowly(features, predictions)


@given(st.integers(2, 6), st.integers(0, 99))
def test_clusters_outvote_single_wrong_predictions(classes, seed):
    generator = torch.Generator().manual_seed(seed)
    truth = torch.arange(12 * classes) % classes
    features = 5 * torch.eye(classes)[truth] + 0.1 * torch.randn(len(truth), classes, generator=generator)
    predicted = truth.clone()
    predicted[:classes] = (truth[:classes] + 1) % classes  # one sample of each class
    predictions = 0.9 * functional.one_hot(predicted, classes) + 0.1 / classes
    assert label_by_centroids(features, predictions).tolist() == truth.tolist()


def test_a_class_that_nothing_is_predicted_to_be_gets_no_sample():
    predictions = torch.tensor([[0.6, 0.0, 0.4], [0.6, 0.0, 0.4], [0.9, 0.0, 0.1]])
    assert label_by_centroids(torch.eye(3), predictions).tolist() == [0, 0, 0]


def test_the_loss_is_the_cross_entropy_to_these_labels_and_reads_the_target_alone():
    samples = Samples()
    objective = refreshed(samples, strength=0.7)
    source, target = samples.batch()
    whole = samples.snapshot().target
    labels = label_by_centroids(whole.features, whole.logits.softmax(1))
    torch.testing.assert_close(objective(source, target), 0.7 * functional.cross_entropy(target.logits, labels))
    order = torch.tensor([4, 2, 9])
    part = samples.target(order)
    torch.testing.assert_close(objective(source, part), 0.7 * functional.cross_entropy(part.logits, labels[order]))
    assert silent(objective(source, target), [source.features])
    assert not silent(objective(source, target), [target.features])


def test_the_strength_waits_for_predictions_unless_it_is_told_not_to():
    waiting, ready = Centroids(4, 3), Centroids(4, 3, start=0.0, full=0.0)
    for objective in (waiting, ready):
        objective.advance(0.0)
    assert (waiting.strength, ready.strength) == (0.0, 0.3)
    waiting.advance(0.3)
    assert waiting.strength == pytest.approx(0.15)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="strength must be positive"):
        Centroids(4, 3, strength=0)
    with pytest.raises(ValueError, match="in this order"):
        Centroids(4, 3, start=0.5, full=0.4)
