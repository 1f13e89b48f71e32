"""Metrics against scikit-learn and torchmetrics, and where classes are absent."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from torchmetrics.functional.classification import multiclass_calibration_error, multiclass_recall

from paretoda.evaluation.metrics import (
    accuracy,
    confusion_matrix,
    expected_calibration_error,
    mean_per_class,
    per_class_recall,
)
from paretoda.evaluation.oracle import oracle_accuracy, oracle_mean_per_class


@st.composite
def cases(draw):
    classes, n = draw(st.integers(2, 6)), draw(st.integers(1, 40))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    seed, scale = draw(st.integers(0, 999)), draw(st.sampled_from([0.1, 1.0, 5.0]))
    logits = scale * torch.randn(n, classes, generator=torch.Generator().manual_seed(seed))
    return logits, torch.tensor(labels), classes


@given(cases())
def test_the_same_as_scikit_learn(case):
    logits, labels, classes = case
    predicted = logits.argmax(1)
    assert accuracy(predicted, labels) == pytest.approx(sk.accuracy_score(labels, predicted))
    matrix = sk.confusion_matrix(labels, predicted, labels=range(classes))
    assert confusion_matrix(predicted, labels, classes).tolist() == matrix.tolist()
    present = sorted(set(labels.tolist()))
    recalls = sk.recall_score(labels.numpy(), predicted.numpy(), labels=present, average=None, zero_division=0)
    assert per_class_recall(predicted, labels, classes) == pytest.approx(dict(zip(present, recalls, strict=True)))
    assert mean_per_class(predicted, labels, classes) == pytest.approx(recalls.mean())
    assert oracle_accuracy(logits, labels) == accuracy(predicted, labels)
    assert oracle_mean_per_class(logits, labels) == mean_per_class(predicted, labels, classes)


@given(cases())
def test_the_same_as_torchmetrics(case):
    logits, labels, classes = case
    logits = logits.double()
    expected = multiclass_calibration_error(logits.softmax(1), labels, classes, n_bins=15, norm="l1")
    assert expected_calibration_error(logits, labels) == pytest.approx(float(expected), abs=1e-5)
    recall = multiclass_recall(logits, labels, classes, average="none").tolist()
    for k, value in per_class_recall(logits.argmax(1), labels, classes).items():
        assert value == pytest.approx(recall[k])


def test_an_absent_class_has_no_recall_and_does_not_count_as_zero():
    predicted, labels = torch.tensor([0, 2, 2]), torch.tensor([0, 0, 2])
    assert per_class_recall(predicted, labels, 4) == {0: 0.5, 2: 1.0}
    assert mean_per_class(predicted, labels, 4) == 0.75
    assert confusion_matrix(predicted, labels, 3).tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]


def test_calibration_of_a_sure_model_is_its_error():
    logits = 1e4 * torch.eye(2)[torch.tensor([0, 0, 0, 1])]
    assert expected_calibration_error(logits, torch.tensor([0, 0, 0, 0])) == 0.25
    assert expected_calibration_error(logits, torch.tensor([0, 0, 0, 1])) == 0
    # two samples at 0.6, one right; two at 0.9, both right: (|.6 - .5| + |.9 - 1|) / 2
    p = torch.tensor([[0.6, 0.4], [0.6, 0.4], [0.9, 0.1], [0.9, 0.1]])
    assert expected_calibration_error(p.log(), torch.tensor([0, 1, 0, 0]), bins=10) == pytest.approx(0.1)


def test_bad_shapes_and_labels_get_a_sentence():
    with pytest.raises(ValueError, match="same length"):
        accuracy(torch.tensor([1, 2]), torch.tensor([1]))
    with pytest.raises(ValueError, match="same length"):
        accuracy(torch.tensor([]), torch.tensor([]))
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.1"):
        confusion_matrix(torch.tensor([0]), torch.tensor([2]), 2)
    with pytest.raises(ValueError, match=r"predictions must lie in 0\.\.1"):
        confusion_matrix(torch.tensor([-1]), torch.tensor([0]), 2)
