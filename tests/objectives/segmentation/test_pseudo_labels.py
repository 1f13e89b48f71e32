"""Thresholds and pseudo-labels: portions, balance, and what is never predicted."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.objectives.segmentation.pseudo_labels import (
    balanced_labels,
    class_thresholds,
    confident_labels,
    fda_thresholds,
    global_threshold,
    soft_labels,
)
from paretoda.types import IGNORE

SEEDS, CLASSES = st.integers(0, 300), st.integers(2, 8)
PORTIONS = st.floats(0.01, 1.0)


def log_p(seed, rows=200, classes=4, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(rows, classes, dtype=torch.float64, generator=generator)).log_softmax(1)


@given(SEEDS, CLASSES, PORTIONS)
def test_the_portion_of_every_class_reaches_its_threshold(seed, classes, portion):
    found = log_p(seed, classes=classes)
    thresholds = class_thresholds(found, portion)
    confidence, predicted = found.max(1)
    for k in range(classes):
        own = confidence[predicted == k]
        kept = int((own >= thresholds[k]).sum())
        assert kept == math.floor(portion * len(own) + 1e-9)
    numbers = [math.floor(portion * int((predicted == k).sum()) + 1e-9) for k in range(classes)]
    assert [t == 0 for t in thresholds.tolist()] == [n == 0 for n in numbers], "t = 1 where no pixel is kept"


@given(SEEDS, PORTIONS, PORTIONS)
def test_thresholds_fall_as_the_portion_grows(seed, one, other):
    less, more = sorted((one, other))
    found = log_p(seed)
    assert (class_thresholds(found, less) >= class_thresholds(found, more)).all()
    assert (global_threshold(found, less) >= global_threshold(found, more)).all()


@given(SEEDS, PORTIONS)
def test_the_order_of_the_pixels_does_not_matter(seed, portion):
    found = log_p(seed)
    turned = found[torch.randperm(len(found), generator=torch.Generator().manual_seed(seed))]
    for thresholds in (class_thresholds, global_threshold):
        assert thresholds(found, portion).equal(thresholds(turned, portion))
    assert fda_thresholds(found).equal(fda_thresholds(turned))


@given(SEEDS)
def test_all_pixels_or_none(seed):
    found = log_p(seed)
    everything, nothing = (balanced_labels(found, class_thresholds(found, portion)) for portion in (1.0, 1e-6))
    assert (everything != IGNORE).all()
    assert (nothing == IGNORE).all()
    assert everything.dtype == torch.uint8


def test_a_class_that_is_never_predicted():
    found = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1]], dtype=torch.float64).log()
    assert class_thresholds(found, 0.5).exp().tolist() == pytest.approx([0.7, 1, 1])
    assert class_thresholds(found, 1.0).exp().tolist() == pytest.approx([0.6, 0.8, 1])
    assert global_threshold(found, 0.7).exp().tolist() == pytest.approx([0.7] * 3)


def test_the_label_is_that_of_the_largest_ratio():
    """0.5 / 0.9 < 0.4 / 0.3: the rarer class wins although it is the less probable."""
    found = torch.tensor([[0.5, 0.4, 0.1], [0.5, 0.25, 0.25], [0.95, 0.01, 0.04]], dtype=torch.float64).log()
    thresholds = torch.tensor([0.9, 0.3, 1.0], dtype=torch.float64).log()
    assert balanced_labels(found, thresholds).tolist() == [1, IGNORE, 0]
    assert confident_labels(found, thresholds).tolist() == [IGNORE, IGNORE, 0]
    maps = found.T.view(1, 3, 3, 1)
    assert balanced_labels(maps, thresholds).flatten().tolist() == [1, IGNORE, 0]


def test_a_rare_class_keeps_the_same_portion_as_a_frequent_one():
    """The rare one is always less certain, so that one threshold for all takes none of it."""
    spread = torch.linspace(0, 0.1, 9900, dtype=torch.float64)
    frequent, rare = 0.85 + spread, 0.55 + spread[::99]
    found = torch.stack([torch.cat([frequent, 1 - rare]), torch.cat([1 - frequent, rare])], 1).log()
    frequent_mask = torch.arange(10000) < 9900
    for thresholds, share in ((class_thresholds, 0.2), (global_threshold, 0.0)):
        labels = balanced_labels(found, thresholds(found, 0.2))
        kept = (labels != IGNORE).double()
        assert kept[frequent_mask].mean().item() == pytest.approx(0.2, abs=0.003)
        assert kept[~frequent_mask].mean().item() == pytest.approx(share, abs=0.01)


@given(SEEDS)
def test_fdas_thresholds_keep_a_third_or_what_is_above_nine_tenths(seed):
    found = log_p(seed, rows=100)
    found[found.argmax(1) == 2] = torch.tensor([0.3, 0.3, 0.1, 0.3], dtype=torch.float64).log()
    thresholds = fda_thresholds(found)
    assert (thresholds <= math.log(0.9) + 1e-12).all()
    assert thresholds[2].exp().item() == 0
    labels = confident_labels(found, thresholds)
    confidence, predicted = found.max(1)
    assert not (labels == 2).any()
    for k in (0, 1, 3):
        own = confidence[predicted == k]
        if len(own):
            assert int((labels == k).sum()) >= len(own) - round(0.66 * len(own))
            assert ((confidence <= math.log(0.9)) | (labels == predicted))[predicted == k].all()


def test_a_class_with_threshold_0_selects_nothing_elsewhere_either():
    thresholds = torch.tensor([math.log(0.5), -math.inf], dtype=torch.float64)
    found = torch.tensor([[0.1, 0.9], [0.9, 0.1]], dtype=torch.float64).log()
    assert confident_labels(found, thresholds).tolist() == [IGNORE, 0]


@given(SEEDS, PORTIONS)
def test_soft_labels_are_the_best_of_their_kind(seed, portion):
    """They minimise -Σ y log(p / t) + α Σ y log y, and are there where that is below 0, what no label costs."""
    found = log_p(seed, rows=30)
    thresholds, alpha = class_thresholds(found, portion), 0.25

    def cost(y):
        return (-(y * (found - thresholds)) + alpha * torch.xlogy(y, y)).sum(1)

    soft = soft_labels(found, thresholds, alpha)
    there = soft.sum(1) > 0
    best = ((found - thresholds) / alpha).softmax(1)
    torch.testing.assert_close(soft.sum(1)[there], torch.ones(int(there.sum()), dtype=torch.float64))
    assert (cost(best) <= 1e-9)[there].all()
    assert (cost(best) >= -1e-9)[~there].all()
    generator = torch.Generator().manual_seed(seed)
    other = torch.rand(found.shape, dtype=torch.float64, generator=generator).softmax(1)
    assert (cost(best) <= cost(other) + 1e-12).all()


def test_soft_labels_become_hard_ones():
    found = log_p(0)
    thresholds = class_thresholds(found, 0.5)
    hard, soft = balanced_labels(found, thresholds), soft_labels(found, thresholds, 1e-6)
    assert soft.argmax(1)[hard != IGNORE].equal(hard[hard != IGNORE].long())
    assert (soft.sum(1) > 0).equal(hard != IGNORE)
