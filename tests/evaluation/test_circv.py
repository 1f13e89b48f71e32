"""CircV: the ridge regression of scikit-learn, and domains that must be aligned class by class."""

from dataclasses import replace

import pytest
import torch
from evaluation.snapshots import clusters, collapsed
from sklearn.linear_model import Ridge

from paretoda.evaluation.validators import CircV
from paretoda.evaluation.validators.circv import fit_ridge


@pytest.mark.parametrize(("n", "width"), [(50, 4), (10, 30), (12, 12)])
def test_the_regression_is_that_of_scikit_learn(n, width):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, width, generator=generator).double() + 3
    labels = torch.arange(n) % 3
    weights = fit_ridge(x, labels, 4, decay=0.2)
    oracle = Ridge(alpha=0.2 * n).fit(x.numpy(), torch.eye(4)[labels].double().numpy())
    assert weights[:-1].numpy() == pytest.approx(oracle.coef_.T, abs=1e-9)
    assert weights[-1].numpy() == pytest.approx(oracle.intercept_, abs=1e-9)


def test_aligned_classes_score_one_and_swapped_ones_nothing():
    good = clusters(100, 4, 30.0)
    assert CircV()(good) == 1
    swapped = replace(good, target=replace(good.target, logits=good.target.logits.roll(1, dims=1)))
    assert CircV()(swapped) == 0
    labels = torch.where(torch.arange(20) < 5, 9, good.held_out_source.labels)  # a quarter is of another class
    assert CircV()(replace(good, held_out_source=replace(good.held_out_source, labels=labels))) == 0.75


def test_one_predicted_class_is_found_as_often_as_it_occurs():
    bad = collapsed(60, 5, 30.0)
    assert CircV()(replace(bad, held_out_source=bad.source)) == 0.2


def test_the_scale_of_the_features_does_not_matter():
    good = clusters(100, 4, 30.0, seed=3)

    def scaled(factor):
        parts = {part: getattr(good, part) for part in ("source", "held_out_source", "target")}
        return replace(good, **{part: replace(old, features=factor * old.features) for part, old in parts.items()})

    assert [CircV(decay=0.5)(scaled(factor)) for factor in (1e-3, 1.0, 1e3)] == [CircV(decay=0.5)(good)] * 3


def test_many_features_are_projected_alike_in_both_domains():
    good = clusters(100, 4, 30.0)
    wide = torch.randn(4, 60, generator=torch.Generator().manual_seed(0))
    parts = {part: getattr(good, part) for part in ("held_out_source", "target")}
    snapshot = replace(good, **{part: replace(old, features=old.features @ wide) for part, old in parts.items()})
    assert CircV(widest=16)(snapshot) == 1
