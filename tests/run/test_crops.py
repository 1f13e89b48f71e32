"""Predictions of images over ten crops: their mean, kept with the model, asked for on the command line."""

import json

import numpy as np
import pytest
import torch
from cli.processes import Inside, rows_of
from PIL import Image

from paretoda.api import adapt
from paretoda.data import open_samples
from paretoda.errors import SettingsError
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.settings import make_settings

TINY = {
    "backbone": "cnn",
    "image_size": 16,
    "augment": "standard",
    "steps": 3,
    "batch_size": 8,
    "bottleneck": 8,
    "select": "last",
    "reference": False,
    "lr": 0.05,
}


def pictures(folder, count=24):
    """Two classes that differ in their left and right halves, in folders."""
    rng = np.random.default_rng(0)
    for k in range(count):
        image = rng.integers(0, 120, (24, 24, 3), dtype=np.uint8)
        image[:, : 12 if k % 2 else 24, k % 3] += 100
        path = folder / ("half" if k % 2 else "whole") / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "ten"
    adapt(data, data, out, method="dann+tcm", crops=10, options=["target.width=8", "alignment.hidden=8"], **TINY)
    return out


def loaded(out):
    directory = RunDirectory(out)
    return load_predictor(directory.model, directory.description)


@pytest.mark.parametrize("refined", [False, True])
def test_ten_crops_are_averaged_as_probabilities(run, data, refined):
    model = loaded(run)
    assert model.crops == 10
    samples = open_samples(data, labelled=False)
    views = model.transform.evaluate_crops(samples.read(range(len(samples)), 24))
    model.model.eval()
    with torch.no_grad():
        features = model.model.encoder(views)
        logits = model.model.head(features)
        rows = model.refiner[0].refined(features, logits) if refined else logits.softmax(1)
    wanted = rows.view(len(samples), 10, -1).mean(1).numpy()
    np.testing.assert_allclose(model.probabilities(samples, refined=refined, batch_size=32), wanted, atol=1e-6)
    assert not np.allclose(model.with_crops(1).probabilities(samples, refined=refined), wanted, atol=1e-4)


def test_the_runs_own_predictions_and_its_description_have_them(run, data):
    assert json.loads((run / "model.json").read_text())["crops"] == 10
    sure = loaded(run).probabilities(open_samples(data, labelled=False)).max(1)
    written = [float(row["confidence"]) for row in rows_of(run / "predictions.csv")]
    np.testing.assert_allclose(written, sure, atol=1e-6)


def test_a_model_of_an_earlier_version_has_one(run, tmp_path):
    facts = json.loads((run / "model.json").read_text())
    del facts["crops"]
    (tmp_path / "model.json").write_text(json.dumps(facts))
    (tmp_path / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes())
    assert loaded(tmp_path).crops == 1


def test_the_commands_take_their_own_number(run, data, capfd):
    inside = Inside(capfd)
    ends = {
        crops: inside("evaluate", run, data, "--json", *crops) for crops in ((), ("--crops", "1"), ("--crops", "10"))
    }
    assert [end.last_line["crops"] for end in ends.values()] == [10, 1, 10]
    assert ends[()].last_line["ece"] == ends["--crops", "10"].last_line["ece"] != ends["--crops", "1"].last_line["ece"]
    one, ten = (inside("predict", run, data, "--crops", crops).out for crops in (1, 10))
    assert one != ten
    assert ten == (run / "predictions.csv").read_text()
    assert "crops are 1, the middle, or 10" in inside("predict", run, data, "--crops", "3").sentence


def test_what_makes_no_sense_is_told_before_anything_is_trained(data, arrays, tmp_path):
    x, y, target, _ = arrays
    with pytest.raises(SettingsError, match="features, which have no crops; leave out --crops"):
        adapt((x, y), target, tmp_path / "a", crops=10)
    with pytest.raises(SettingsError, match="take --augment flip, light, standard or strong"):
        adapt(data, data, tmp_path / "b", **{**TINY, "augment": "none"}, crops=10)
    with pytest.raises(SettingsError, match="1, the middle, or 10"):
        make_settings({"crops": 5})
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
