"""DEV: the control variate's closed form, a density ratio that is known, and a risk that is known."""

import time

import numpy as np
import pytest
import torch
from evaluation.snapshots import from_features, linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from paretoda.evaluation.validators import DEV
from paretoda.evaluation.validators.dev import density_ratio, dev_risk, fit_logistic, truncate_weights

DECAYS = DEV().decays
W, LOSS = np.array([0.5, 2, 1, 1]), np.array([1.0, 0, 0, 1])


def test_the_specifications_numbers():
    assert dev_risk(W, LOSS) == pytest.approx(0.421053, abs=1e-6)
    eta = (dev_risk(W, LOSS) - 0.375) / (W.mean() - 1)
    assert eta == pytest.approx(0.368421, abs=1e-6)


def test_equal_weights_leave_the_mean_loss():
    assert dev_risk(np.ones(4), LOSS) == 0.5
    assert dev_risk(np.array([3.0]), np.array([1.0])) == 3.0


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30))
def test_a_constant_loss_is_its_own_risk_whatever_the_weights(weights):
    w = np.array(weights)
    if np.ptp(w) > 1e-3 * w.mean():
        assert dev_risk(w, np.ones(len(w))) == pytest.approx(1)
    assert dev_risk(w, np.zeros(len(w))) == 0


def test_no_weight_exceeds_the_root_of_n_times_the_mean():
    assert truncate_weights(np.array([0.0, 0, 0, 0, 0, 0, 0, 0, 90])).tolist() == [0] * 8 + [30]
    assert truncate_weights(W).tolist() == W.tolist()


def test_the_density_ratio_of_two_gaussians_is_recovered_and_not_its_inverse():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(4000, 2)), rng.normal(size=(1000, 2)) + np.array([1, 0])
    points = np.array([[-1.0, 0], [0.5, 0], [2, 0]])
    ratio = density_ratio(source, target, points, DECAYS)
    assert np.log(ratio) == pytest.approx([-1.5, 0, 1.5], abs=0.25)  # log ratio = x - 1/2


def test_the_weight_decay_is_per_sample_so_that_more_of_the_same_data_changes_nothing():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 1
    once = density_ratio(source, target, source, (0.1,))
    thrice = density_ratio(np.tile(source, (3, 1)), np.tile(target, (3, 1)), source, (0.1,))
    assert thrice == pytest.approx(once, rel=1e-2)
    assert np.abs(np.log(density_ratio(source, target, source, (10.0,)))).max() < 0.5 * np.abs(np.log(once)).max()


def shifted(n=2000, width=2, shift=1.5, seed=0):
    """Source at 0, target shifted along the first axis, where the model errs to the right of 1."""
    rng = np.random.default_rng(seed)
    draw = lambda mean, count: torch.tensor(rng.normal(size=(count, width)) + np.eye(width)[0] * mean)  # noqa: E731
    model = linear_model(width, 2, torch.tensor(np.stack([np.eye(width)[1], -np.eye(width)[1]])))
    held_out, target = draw(0, n // 4), draw(shift, n)

    def labels(x):
        right = model.head(x).argmax(1)
        return torch.where(x[:, 0] > 1, 1 - right, right)

    source = draw(0, n)
    error = float((target[:, 0] > 1).double().mean())
    return from_features((source, labels(source)), (held_out, labels(held_out)), target, model), error


@pytest.mark.parametrize("seed", range(3))
def test_the_risk_of_a_covariate_shift_is_found_where_the_source_risk_is_far_off(seed):
    snapshot, error = shifted(seed=seed)
    source_error = float((snapshot.source.features[:, 0] > 1).double().mean())
    assert error > 0.65
    assert source_error < 0.2
    assert -DEV()(snapshot) == pytest.approx(error, abs=0.08)


def test_two_thousand_samples_of_256_features_take_seconds():
    snapshot, _ = shifted(n=2000, width=256, shift=0.5)
    start = time.process_time()
    DEV()(snapshot)
    assert time.process_time() - start < 3


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(20, 80))
@settings(max_examples=25, deadline=None)
def test_the_logistic_regression_is_scikit_learns(seed, width, count):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, width)) @ rng.normal(size=(width, width))  # axes of very different lengths
    x -= x.mean(axis=0)
    y = (np.arange(count) % 2).astype(float)
    for decay, found in zip((1.0, 0.01), fit_logistic(x, y, (1.0, 0.01)), strict=True):
        oracle = LogisticRegression(C=1 / (decay * count), tol=1e-10, max_iter=10_000).fit(x, y)
        scores = x @ found[:-1] + found[-1]
        assert scores == pytest.approx(oracle.decision_function(x), abs=5e-3)


def test_wide_features_are_projected_and_still_tell_the_domains_apart():
    generator = torch.Generator().manual_seed(0)
    source, held_out, target = (torch.randn(300, 600, generator=generator) for _ in range(3))
    labels = torch.arange(300) % 2
    snapshot = from_features((source, labels), (held_out, labels), target + 0.5, linear_model(600, 2))
    weights = DEV(widest=64).weights(snapshot)
    assert weights.shape == (300,)
    assert weights.mean() < 0.5  # held-out source samples look like the source
    assert np.array_equal(weights, DEV(widest=64).weights(snapshot))
