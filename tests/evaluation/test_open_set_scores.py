"""H-score, known and unknown accuracy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.evaluation.metrics import open_set_scores
from paretoda.evaluation.oracle import oracle_open_set_scores


def test_scores_are_those_computed_by_hand():
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 2])
    predicted = torch.tensor([0, 0, 0, 2, 1, 0, 2, 2, 2, 1])
    found = open_set_scores(predicted, labels, 2)
    known = (3 / 4 + 1 / 2) / 2  # the mean over classes
    assert found["known_accuracy"] == pytest.approx(known)
    assert found["unknown_accuracy"] == pytest.approx(3 / 4)
    assert found["h_score"] == pytest.approx(2 * known * 0.75 / (known + 0.75))
    assert oracle_open_set_scores(predicted, labels, 2) == found


def test_a_score_without_samples_is_none():
    only = torch.tensor([0, 1])
    assert open_set_scores(only, only, 2) == {"known_accuracy": 1.0, "unknown_accuracy": None, "h_score": None}
    none = torch.tensor([2, 2])
    assert open_set_scores(none, none, 2) == {"known_accuracy": None, "unknown_accuracy": 1.0, "h_score": None}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_the_h_score_lies_between_its_parts_and_vanishes_with_either(pairs):
    labels, predicted = torch.from_numpy(np.array(pairs, dtype=np.int64).T)
    found = open_set_scores(predicted, labels, 3)
    known, unknown, score = found["known_accuracy"], found["unknown_accuracy"], found["h_score"]
    if known is None or unknown is None:
        assert score is None
        return
    assert min(known, unknown) - 1e-12 <= score <= max(known, unknown) + 1e-12
    assert (score == 0) == (min(known, unknown) == 0)
    assert score <= (known + unknown) / 2 + 1e-12
