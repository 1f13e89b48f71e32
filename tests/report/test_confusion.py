"""The matrix and the table of classes say what was counted."""

import re

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from paretoda.report.confusion import Confusion, draw_matrix
from paretoda.report.pictures import count_confusion


def test_precision_and_recall_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(4, size=200), rng.integers(4, size=200)
    confusion = count_confusion("target", "abcd", labels, predicted)
    _, samples, taken, precision, recall = zip(*confusion.rows(), strict=True)
    assert list(precision) == pytest.approx(precision_score(labels, predicted, average=None))
    assert list(recall) == pytest.approx(recall_score(labels, predicted, average=None))
    assert list(samples) == np.bincount(labels).tolist()
    assert list(taken) == np.bincount(predicted).tolist()
    assert confusion.accuracy == pytest.approx((labels == predicted).mean())


def test_a_class_without_samples_or_predictions_has_no_share() -> None:
    confusion = Confusion("x", ("a", "b", "c"), ((3, 1, 0), (0, 0, 0), (0, 2, 0)))
    assert confusion.rows() == [("a", 4, 3, 1.0, 0.75), ("b", 0, 3, 0.0, None), ("c", 2, 0, None, 0.0)]
    assert confusion.mistakes() == [("c", "b", 2), ("a", "b", 1)]


@pytest.mark.parametrize("number", [1, 2, 7, 21, 60, 345])
def test_a_matrix_of_any_size_stays_inside_its_picture(number: int) -> None:
    counts = np.eye(number, dtype=int) * 5
    counts[0, -1] += 1
    picture = str(draw_matrix(Confusion("x", [f"class {place}" for place in range(number)], counts.tolist())))
    size = float(re.findall(r'viewBox="0 0 (\S+)', picture)[0])
    spots = re.findall(r'class="cell \w+" x="(\S+)" y="(\S+)" width="(\S+)"', picture)
    assert len(spots) == (number**2 if number <= 20 else number + 1)
    assert all(float(x) + float(w) <= size + 0.2 and float(y) + float(w) <= size + 0.2 for x, y, w in spots)


def test_names_are_escaped() -> None:
    assert "<script" not in draw_matrix(Confusion("<script>", ("<script>", "b"), ((1, 2), (3, 4))))
