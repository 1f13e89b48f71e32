"""Few target labels: who trains, who guides, and which labels are refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.build_pair import make_pair
from paretoda.data.open.samples import open_samples
from paretoda.data.rows import make_feature_rows
from paretoda.data.settings import PairSettings
from paretoda.data.target_labels import describe_target_labels, divide_labels, label_rows, open_target_labels
from paretoda.errors import DataError


def few_rows(labels, train, held_out, guides=True):
    """Rows whose only feature is their position."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 1)), np.arange(40) % 2
    pair = make_pair((x, y), x, PairSettings(batch_size=4, scaling="none"))
    samples = open_samples(np.arange(len(labels), dtype=np.float32)[:, None], labelled=False)
    rows = make_feature_rows(samples, pair.target.transform)
    return pair, label_rows(rows, np.asarray(labels), train, held_out, guides=guides)


@given(st.lists(st.integers(0, 4), min_size=4, max_size=60), st.integers(0, 5))
def test_no_sample_both_trains_and_is_held_out(labels, seed):
    labels = np.array(labels)
    counts = np.bincount(labels)
    if (counts[counts > 0] - 1).sum() < 2:
        with pytest.raises(DataError, match="label two of a class"):
            divide_labels(labels, seed, train=True, hold_out=True)
        return
    try:
        train, guide = divide_labels(labels, seed, train=True, hold_out=True)
    except DataError:
        assert len(labels) < 5  # half of four is two, of three one
        return
    assert sorted([*train, *guide]) == list(range(len(labels)))
    assert set(labels[train]) == set(labels)  # every class trains
    assert np.array_equal(divide_labels(labels, seed, train=True, hold_out=True)[1], guide)


def test_all_labels_serve_a_single_use():
    labels = np.array([0, 0, 1])
    assert [len(part) for part in divide_labels(labels, 0, train=True, hold_out=False)] == [3, 0]
    assert [len(part) for part in divide_labels(labels, 0, train=False, hold_out=True)] == [0, 3]
    assert [len(part) for part in divide_labels(labels, 0, train=False, hold_out=False)] == [0, 0]


def test_one_label_of_each_class_cannot_do_both():
    with pytest.raises(DataError, match=r"leave 0 for the guide or the choice.*--no-label-loss"):
        divide_labels(np.arange(3), 0, train=True, hold_out=True)


def test_every_epoch_has_each_labelled_sample_once_with_its_label():
    labels = np.array([0, 1, 2, 0, 1, 2])
    _, few = few_rows(labels, np.array([0, 1, 2, 3]), np.array([4, 5]))
    seen = []
    for step in range(2):
        inputs, theirs = few.read_training(7, step, 2)
        again, _ = few.read_training(7, step, 2)
        assert torch.equal(inputs, again)
        assert theirs.tolist() == labels[inputs[:, 0].long()].tolist()
        seen += inputs[:, 0].long().tolist()
    assert sorted(seen) == [0, 1, 2, 3]
    inputs, theirs, index = few.read_guide(7, 0, 10)
    assert sorted(inputs[:, 0].tolist()) == [4, 5]
    assert theirs.tolist() == labels[index].tolist()


def test_batches_have_labels_only_of_labelled_samples():
    from dataclasses import replace

    pair, few = few_rows(np.array([0, 1, 0, 1]), np.array([0, 1]), np.array([2, 3]))
    with_few = replace(pair, labelled=few)
    plain, batch = pair.batch(3), with_few.batch(3)
    for name in ("source", "labels", "target", "source_index", "target_index"):
        assert torch.equal(getattr(plain, name), getattr(batch, name))
    assert sorted(batch.labelled[:, 0].tolist()) == [0, 1]
    assert sorted(batch.guide[:, 0].tolist()) == [2, 3]
    assert plain.labelled is plain.target_labels is plain.guide_labels is None
    assert with_few.batch(3, guide=False).guide is None
    held = with_few.held_out_labelled(lambda inputs: (inputs, inputs))
    assert held.features[:, 0].tolist() == [2, 3]
    assert held.labels.tolist() == [0, 1]
    choosing = replace(pair, labelled=replace(few, guides=False)).batch(3)
    assert torch.equal(choosing.guide, plain.guide)
    assert choosing.guide_labels is None
    inputs, labels = with_few.labelled_samples()
    assert inputs[:, 0].tolist() == labels.tolist() == [0, 1]


def test_what_does_not_fit_the_target_is_refused():
    target = open_samples(np.ones((30, 4)), labelled=False)
    with pytest.raises(DataError, match="have 3 features, the target has 4"):
        open_target_labels((np.ones((2, 3)), [0, 1], ["a", "b"]), target, ("a", "b"))
    with pytest.raises(DataError, match="has classes that the model does not know: c"):
        open_target_labels((np.ones((2, 4)), [0, 1], ["a", "c"]), target, ("a", "b"))
    with pytest.raises(DataError, match="are images, the target is features"):
        open_target_labels((np.zeros((2, 8, 8), np.uint8), [0, 1], ["a", "b"]), target, ("a", "b"))
    with pytest.raises(DataError, match="no labels"):
        open_target_labels(np.ones((2, 4)), target, ("a", "b"))


def test_classes_may_be_in_another_order():
    target = open_samples(np.ones((30, 4)), labelled=False)
    samples, labels = open_target_labels((np.ones((2, 4)), [0, 1], ["b", "a"]), target, ("a", "b", "c"))
    assert len(samples) == 2
    assert labels.values.tolist() == [1, 0]


def test_the_user_hears_of_missing_classes():
    _, few = few_rows(np.array([0, 0]), np.array([0]), np.array([1]))
    assert describe_target_labels(few, {0}, ("ant", "bee")) == [
        "2 target samples are labelled: 1 train and 1 guide.",
        "These classes have no labelled target sample: bee.",
    ]
