"""What the shallow contenders promise."""

import numpy as np
import pytest
import sklearn

from paretoda.bench.baselines import BASELINES, coral, logistic_regression, propagate_labels
from paretoda.bench.execute import _run_baseline
from paretoda.data import open_samples
from paretoda.run.task import BenchData
from paretoda.tasks.classification.evaluation import OracleSamples


def domains(seed=0, n=400, d=4):
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(2, d, d))
    return rng.normal(size=(n, d)) @ mixed[0] + 3, rng.normal(size=(n + 50, d)) @ mixed[1] - 1


def test_coral_gives_the_source_the_targets_covariance_as_the_ridge_vanishes():
    gaps = []
    for ridge in (1.0, 1e-2, 1e-9):
        source, target = coral(*domains(), ridge=ridge)
        gaps.append(np.abs(np.cov(source, rowvar=False) - np.cov(target, rowvar=False)).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-6


def test_propagation_stays_on_the_simplex_and_outvotes_a_lonely_mistake():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    features = np.eye(2)[y] + 0.05 * rng.normal(size=(60, 2))
    sure = np.eye(2)[y] * 0.8 + 0.1
    sure[0] = sure[0, ::-1]  # the others of its group disagree
    spread = propagate_labels(features, sure)
    np.testing.assert_allclose(spread.sum(axis=1), 1)
    assert (spread >= 0).all()
    assert sure.argmax(axis=1)[0] != y[0]
    np.testing.assert_array_equal(spread.argmax(axis=1), y)


def test_propagation_of_two_samples_asks_the_only_neighbour():
    spread = propagate_labels(np.eye(2), np.eye(2), rounds=1)
    np.testing.assert_allclose(spread, 0.5)


@pytest.mark.parametrize("name", BASELINES)
def test_a_class_without_source_samples_has_probability_zero_and_the_others_are_found(name):
    rng = np.random.default_rng(2)
    labels = np.where(np.arange(120) % 2 == 0, 0, 2)
    source, target = (np.eye(3)[labels] * 6 + rng.normal(size=(120, 3)) + shift for shift in (0.0, 0.5))
    with sklearn.config_context(enable_metadata_routing=False):  # skada's import switches it on, but only once
        found = BASELINES[name](source, labels, target, 4)
    assert found.shape == (120, 4)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found[:, [1, 3]] == 0).all()
    assert np.mean(found.argmax(axis=1) == labels) > 0.95


def test_images_are_read_as_rows():
    rng = np.random.default_rng(3)
    labels = np.arange(40) % 2
    images = (rng.random((40, 3, 3)) * 50 + 150 * labels[:, None, None]).astype(np.uint8)
    found = logistic_regression(images, labels, images, 2)
    np.testing.assert_array_equal(found.argmax(axis=1), labels)


def test_images_of_two_sizes_are_brought_to_the_tasks_own():
    rng = np.random.default_rng(4)
    labels = np.arange(60) % 2

    def images(side):
        bright = np.zeros((60, side, side))
        bright[labels == 1, : side // 2] = 200
        return (bright + rng.random((60, side, side)) * 40).astype(np.uint8)

    target = images(16)
    test = OracleSamples(open_samples(target, labelled=False), ("a", "b"), labels)
    loaded = BenchData((images(8), labels, ["a", "b"]), target, test)
    settings = {"backbone": "cnn", "image_size": 8}
    for name in ("logistic", "logistic-z-propagated"):
        assert _run_baseline(name, loaded, settings)["accuracy"]["last"] > 0.95


def test_a_baseline_reads_all_features_and_not_the_components_of_the_networks(monkeypatch):
    rng = np.random.default_rng(5)
    labels = np.arange(300) % 2
    source, target = rng.normal(size=(300, 140)).astype(np.float32), rng.normal(size=(300, 140)).astype(np.float32)
    seen = []

    def remember(source, labels, target, classes):
        seen.append((source, target))
        return logistic_regression(source, labels, target, classes)

    monkeypatch.setitem(BASELINES, "logistic", remember)
    test = OracleSamples(open_samples(target, labelled=False), ("a", "b"), labels)
    _run_baseline("logistic", BenchData((source, labels, ["a", "b"]), target, test), {})
    np.testing.assert_array_equal(seen[0][0], source)
    np.testing.assert_array_equal(seen[0][1], target)
