import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from paretoda.data.build_pair import make_pair
from paretoda.data.drawn.digits import CLASSES, draw_printed_digits, load_handwritten_digits, load_handwritten_labels


@pytest.fixture(scope="module")
def digits() -> tuple[tuple[np.ndarray, np.ndarray, tuple[str, ...]], np.ndarray]:
    return (*draw_printed_digits(), CLASSES), load_handwritten_digits()


def test_both_domains_have_the_same_form(digits) -> None:
    (x, y, classes), target = digits
    assert x.shape == (2100, 16, 16)
    assert target.shape == (1797, 16, 16)
    assert x.dtype == target.dtype == np.uint8
    assert np.bincount(y).tolist() == [210] * 10
    assert classes == CLASSES


def test_they_are_the_same_every_time(digits) -> None:
    x, y = draw_printed_digits(60)
    assert (x == digits[0][0][:60]).all()
    assert (y == digits[0][1][:60]).all()
    assert (load_handwritten_digits()[::100] == digits[1][::100]).all()


def test_no_image_is_empty(digits) -> None:
    assert digits[0][0].max(axis=(1, 2)).min() > 120


def test_the_gap_is_real_and_not_hopeless(digits) -> None:
    (x, y, _), target = digits
    rows = [images.reshape(len(images), -1) / 255 for images in (x, target)]
    labels = load_handwritten_labels()
    order = np.random.default_rng(0).permutation(len(x))
    half, rest = order[:1050], order[1050:]
    source_only = LogisticRegression(max_iter=300).fit(rows[0][half], y[half])
    assert source_only.score(rows[0][rest], y[rest]) > 0.93
    assert 0.5 < source_only.score(rows[1], labels) < 0.75
    supervised = LogisticRegression(max_iter=300).fit(rows[1][::2], labels[::2])
    assert supervised.score(rows[1][1::2], labels[1::2]) > 0.94


def test_they_make_a_pair_without_notes(digits) -> None:
    pair = make_pair(*digits)
    assert pair.notes == ()
    assert pair.input_shape == (1, 16, 16)
    assert pair.target.transform.augment == "none"
