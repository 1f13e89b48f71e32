"""Scores of label maps as Cityscapes counts them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, jaccard_score
from torchmetrics.functional.classification import multiclass_jaccard_index

from paretoda.evaluation.overlap import Scores, confusion
from paretoda.types import IGNORE

SEEDS, CLASSES = st.integers(0, 300), st.integers(2, 8)


def maps(seed, classes, ignored=0.2):
    generator = torch.Generator().manual_seed(seed)
    truth, prediction = torch.randint(0, classes, (2, 3, 6, 7), generator=generator)
    return truth.masked_fill(torch.rand(truth.shape, generator=generator) < ignored, IGNORE), prediction


@given(SEEDS, CLASSES)
def test_the_matrix_and_the_scores_are_those_of_sklearn_and_torchmetrics(seed, classes):
    truth, prediction = maps(seed, classes)
    matrix = confusion(truth, prediction, classes)
    valid = truth != IGNORE
    pair = truth[valid].numpy(), prediction[valid].numpy()
    assert matrix[:, :classes].numpy().tolist() == confusion_matrix(*pair, labels=range(classes)).tolist()
    assert not matrix[:, classes].any()
    scores = Scores.of(matrix)
    present = [value for value in scores.iou if not math.isnan(value)]
    oracle = jaccard_score(*pair, labels=range(classes), average=None, zero_division=0)
    assert [0 if math.isnan(value) else value for value in scores.iou] == pytest.approx(oracle.tolist())
    if scores.counted == classes:
        other = multiclass_jaccard_index(prediction, truth, classes, ignore_index=IGNORE, average="macro")
        assert scores.miou == pytest.approx(other.item(), abs=1e-6)
    assert scores.miou == pytest.approx(sum(present) / len(present))
    assert scores.accuracy == pytest.approx((truth[valid] == prediction[valid]).double().mean().item())


@given(SEEDS, st.integers(3, 8), st.data())
def test_the_mean_over_some_classes_is_that_of_sklearn(seed, classes, data):
    truth, prediction = maps(seed, classes)
    scores = Scores.of(confusion(truth, prediction, classes))
    some = data.draw(st.lists(st.sampled_from(range(classes)), min_size=1, unique=True))
    valid = truth != IGNORE
    pair = truth[valid].numpy(), prediction[valid].numpy()
    there = [k for k in some if not math.isnan(scores.iou[k])]
    chosen = scores.over(some)
    assert (chosen.counted, chosen.iou, chosen.accuracy) == (len(there), scores.iou, scores.accuracy)
    if there:
        assert chosen.miou == pytest.approx(jaccard_score(*pair, labels=there, average="macro", zero_division=0))


@given(SEEDS, CLASSES)
def test_a_perfect_prediction_scores_1(seed, classes):
    truth, _ = maps(seed, classes)
    scores = Scores.of(confusion(truth, truth, classes))
    assert (scores.miou, scores.accuracy) == (1, 1)
    assert all(value == 1 for value in scores.iou if not math.isnan(value))


def test_two_classes_that_are_swapped_score_0():
    truth = torch.tensor([0, 0, 1, 1, 2, 2])
    scores = Scores.of(confusion(truth, torch.tensor([1, 1, 0, 0, 2, 2]), 3))
    assert scores.iou == (0, 0, 1)
    assert scores.miou == pytest.approx(1 / 3)


@given(SEEDS, CLASSES)
def test_what_is_predicted_at_ignored_pixels_never_counts(seed, classes):
    truth, prediction = maps(seed, classes)
    other = torch.where(truth == IGNORE, (prediction + 1) % classes, prediction)
    assert confusion(truth, prediction, classes).equal(confusion(truth, other, classes))


@given(SEEDS, CLASSES, st.integers(1, 3))
def test_counts_of_parts_add_up_to_counts_of_all(seed, classes, size):
    truth, prediction = maps(seed, classes)
    parts = zip(truth.split(size), prediction.split(size), strict=True)
    total = sum(confusion(*part, classes) for part in parts)
    assert total.equal(confusion(truth, prediction, classes))
    assert total.dtype == torch.int64


def test_it_is_not_the_mean_over_images():
    """Class 1 has 1 pixel in the first image, missed, and 9 in the second, found: 9/10, not (0 + 1) / 2."""
    truth = torch.tensor([[0] * 9 + [1], [1] * 9 + [0]])
    prediction = torch.tensor([[0] * 10, [1] * 9 + [0]])
    assert Scores.of(confusion(truth, prediction, 2)).iou == pytest.approx((10 / 11, 9 / 10))


def test_the_example_by_hand():
    truth, prediction = torch.tensor([[0, 1], [1, IGNORE]]), torch.tensor([[0, 0], [1, 1]])
    matrix = confusion(truth, prediction, 2)
    assert matrix.tolist() == [[1, 0, 0], [1, 1, 0]]
    scores = Scores.of(matrix)
    assert scores.iou == (0.5, 0.5)
    assert scores.accuracy == pytest.approx(2 / 3)


def test_no_class_on_a_labelled_pixel_is_a_miss_of_the_label_and_of_nothing_else():
    truth, prediction = torch.tensor([0, 0, 1, 1]), torch.tensor([0, IGNORE, 1, -1])
    matrix = confusion(truth, prediction, 2)
    assert matrix.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert Scores.of(matrix).iou == (0.5, 0.5)
    assert Scores.of(matrix).accuracy == 0.5


def test_an_absent_class_is_left_out_and_a_wrongly_predicted_one_is_not():
    truth = torch.tensor([0, 0, 1, 1])
    scores = Scores.of(confusion(truth, truth, 4))
    assert math.isnan(scores.iou[2])
    assert (scores.miou, scores.counted) == (1, 2)
    scores = Scores.of(confusion(truth, torch.tensor([0, 0, 1, 3]), 4))
    assert (scores.iou[3], scores.counted) == (0, 3)
    nothing = Scores.of(confusion(torch.full((4,), IGNORE), truth, 4))
    assert math.isnan(nothing.miou)
    assert math.isnan(nothing.accuracy)
    assert nothing.counted == 0


def test_counts_are_whole_numbers_beyond_single_precision():
    matrix = torch.tensor([[2**53 + 1, 0, 0], [0, 2**24 + 1, 0]])
    assert Scores.of(matrix).iou == (1, 1)
    total = confusion(torch.zeros(1, dtype=torch.uint8), torch.zeros(1, dtype=torch.uint8), 2) + matrix
    assert int(total[0, 0]) == 2**53 + 2


def test_wrong_labels_and_shapes_are_refused():
    with pytest.raises(ValueError, match=r"must lie in 0..1 or be 255"):
        confusion(torch.tensor([2]), torch.tensor([0]), 2)
    with pytest.raises(ValueError, match="must have one shape"):
        confusion(torch.zeros(2, 2), torch.zeros(2, 3), 2)
