import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.core.options import name_some
from paretoda.data.samples import Labels, labels_from_integers, labels_from_names, match_labels
from paretoda.errors import DataError


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=40))
def test_any_integers_become_positions_and_their_names_give_them_back(values: list[int]) -> None:
    labels = labels_from_integers(np.array(values), None, "data")
    assert [int(labels.classes[value]) for value in labels.values] == values
    assert labels.values.min() == 0
    assert labels.values.max() == len(labels.classes) - 1


@given(st.lists(st.text(min_size=1, max_size=5).filter(str.isprintable), min_size=1))
def test_names_become_sorted_classes(names: list[str]) -> None:
    labels = labels_from_names(names)
    assert len(set(labels.classes)) == len(labels.classes)
    assert labels.values.dtype == np.int64


def test_numbers_as_names_are_in_numerical_order() -> None:
    assert labels_from_names(["10", "9", "-1", "10"]).classes == ("-1", "9", "10")


def test_two_spellings_of_an_umlaut_are_one_class() -> None:
    assert labels_from_names(["B\u00e4r", "Ba\u0308r"]).classes == ("B\u00e4r",)


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (np.array([0.0, 1.0]), None, "instead of integers"),
        (np.array(["a", "b"]), None, "instead of integers"),
        (np.zeros((2, 4, 4), dtype=np.uint8), None, "one integer per sample"),
        (np.array([0, 2]), np.array(["a", "b"]), "beyond its 2 classes .for example 2."),
        (np.array([0, -1]), np.array(["a", "b"]), "beyond its 2 classes"),
        (np.array([0, 1]), np.array(["a", "a"]), "more than once"),
        (np.array([0, 1]), np.array([["a", "b"]]), "list of names"),
    ],
)
def test_wrong_labels_are_named(y: np.ndarray, classes: np.ndarray | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        labels_from_integers(y, classes, "data")


def test_labels_are_matched_to_the_models_classes_by_name() -> None:
    mine = Labels(np.array([0, 1, 1]), ("bike", "ant"))
    assert match_labels(mine, ("ant", "bike", "cat"), "data").values.tolist() == [1, 0, 0]


def test_numbers_are_matched_as_names_first_and_as_positions_only_where_names_are_words() -> None:
    numbers = labels_from_integers(np.array([5, 3]), None, "data")
    assert match_labels(numbers, ("3", "4", "5"), "data").values.tolist() == [2, 0]
    assert match_labels(labels_from_integers(np.array([0, 2]), None, "d"), ("a", "b", "c"), "d").values.tolist() == [
        0,
        2,
    ]
    with pytest.raises(DataError, match="does not know: 0"):
        match_labels(labels_from_integers(np.array([0, 1]), None, "d"), ("1", "2"), "d")


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(DataError, match="zebra"):
        match_labels(labels_from_names(["ant", "zebra"]), ("ant", "bee"), "data")


def test_long_lists_are_cut() -> None:
    assert name_some([str(k) for k in range(8)]) == "0, 1, 2, 3, 4 and 3 more"
