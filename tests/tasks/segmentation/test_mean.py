"""The mean of several segmenters, pixel by pixel at the image's size."""

import numpy as np
import pytest
import torch

from paretoda.data.segmentation import open_scenes
from paretoda.errors import RunError
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.loading import load_ensemble
from paretoda.tasks.segmentation.evaluation import measure_maps
from paretoda.tasks.segmentation.predictor import average

CPU = torch.device("cpu")


def load_mean(paths, device):
    return load_ensemble(paths, device)[1]


@pytest.fixture
def paths(bands):
    return [bands / "0.01", bands / "0.09"]


@pytest.mark.parametrize("refined", [False, True])
def test_the_mean_of_two_is_the_mean_of_their_probabilities_at_the_images_own_size(paths, streets, refined):
    image = np.ascontiguousarray(streets[1][0][:37, :51])
    first, second = (load_mean([path], CPU).probabilities(image, refined=refined) for path in paths)
    assert not torch.allclose(first, second, atol=1e-3)
    found = load_mean(paths, CPU).probabilities(image, refined=refined)
    assert found.shape == (len(streets[0][2]), 37, 51)
    torch.testing.assert_close(found, (first + second) / 2)


def test_the_mean_of_a_run_with_itself_is_the_run(paths, streets):
    alone, twice = load_mean(paths[:1], CPU), load_mean([paths[0], paths[0]], CPU)
    assert alone.probabilities(streets[1][0]).equal(twice.probabilities(streets[1][0]))


def test_a_mean_among_them_counts_as_its_runs(paths, streets):
    first, second = (load_mean([path], CPU) for path in paths)
    nested = average([average([first, second]), second])
    flat = average([first, second, second])
    assert nested.probabilities(streets[1][0]).equal(flat.probabilities(streets[1][0]))


def test_scenes_and_measures_are_those_of_the_mean(paths, streets):
    (_, _, classes), target, truth = streets
    both = load_mean(paths, CPU)
    samples = open_scenes((target[:2], truth[:2], classes), labelled=True)
    wanted = [both.probabilities(image).argmax(0).numpy() for image in target[:2]]
    for scene, labels in zip(both.scenes(samples), wanted, strict=True):
        assert np.array_equal(scene.labels, labels)
    valid = truth[:2] != 255
    right = (np.stack(wanted) == truth[:2])[valid].mean()
    assert measure_maps(both, samples).scores.accuracy == pytest.approx(right)


def test_a_mean_is_not_saved_as_if_it_were_its_first_run(paths, tmp_path):
    directory = RunDirectory(tmp_path)
    with pytest.raises(RunError, match="not a model of its own: save each"):
        load_mean(paths, CPU).save(directory.model, directory.description)
    assert not list(tmp_path.iterdir())
