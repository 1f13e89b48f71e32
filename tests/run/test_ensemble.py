"""The mean of several classifiers: its probabilities, and what has none."""

import numpy as np
import pytest
import torch
from run.conftest import blobs

from paretoda import adapt
from paretoda.data import open_samples
from paretoda.errors import RunError
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.predictor import MeanPredictor, average
from paretoda.tasks.loading import load_ensemble

CPU = torch.device("cpu")


def load_mean(paths, device):
    return load_ensemble(paths, device)[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two finished runs of the same classes, with the target's samples."""
    x, y, t, _ = blobs()
    small = {"steps": 6, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False, "target_loss": "tcm"}
    paths = [tmp_path_factory.mktemp("mean") / f"run-{seed}" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        adapt((x, y), t, path, seed=seed, **small)
    return paths, open_samples(t, labelled=False)


def one(path):
    return load_mean([path], CPU)


@pytest.mark.parametrize("refined", [False, True])
def test_the_probabilities_are_the_mean_of_the_runs(runs, refined):
    paths, samples = runs
    first, second = (one(path).probabilities(samples, refined=refined) for path in paths)
    assert not np.allclose(first, second, atol=1e-3)
    found = load_mean(paths, CPU).probabilities(samples, refined=refined)
    np.testing.assert_allclose(found, (first + second) / 2, rtol=1e-6)
    assert found.dtype == np.float32


def test_the_mean_of_a_run_with_itself_is_the_run(runs):
    paths, samples = runs
    alone, twice = one(paths[0]), load_mean([paths[0], paths[0]], CPU)
    assert np.array_equal(alone.probabilities(samples), twice.probabilities(samples))
    assert not isinstance(alone, MeanPredictor)


def test_a_mean_among_them_counts_as_its_runs(runs):
    paths, samples = runs
    first, second = (one(path) for path in paths)
    nested, flat = average([average([first, second]), second]), average([first, second, second])
    assert np.array_equal(nested.probabilities(samples), flat.probabilities(samples))


def test_a_mean_has_no_temperature(runs):
    paths, samples = runs
    assert one(paths[0]).temperature is not None
    both = load_mean(paths, CPU)
    assert both.temperature is None
    assert np.array_equal(both.probabilities(samples, calibrated=True), both.probabilities(samples))


def test_crops_are_those_of_every_run(runs):
    both = load_mean(runs[0], CPU).with_crops(10)
    assert [run.crops for run in both.runs] == [10, 10]


def test_a_mean_is_not_saved_as_if_it_were_its_first_run(runs, tmp_path):
    directory = RunDirectory(tmp_path)
    both = load_mean(runs[0], CPU)
    with pytest.raises(RunError, match="not a model of its own: save each"):
        both.save(directory.model, directory.description)
    assert not list(tmp_path.iterdir())
    with pytest.raises(RunError, match="leave out --preference or --with"):
        both.with_preference([1, 1, 1])
