"""Details of the published methods, by `options`, through whole runs on drawn streets."""

import json

import numpy as np
import pytest
import torch
from tasks.segmentation.conftest import QUICK, goes_on_to_the_same_bytes, same

from paretoda import segment
from paretoda.data.segmentation import make_scene_pair
from paretoda.errors import SettingsError
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.settings import source_only
from paretoda.tasks.segmentation.build import make_model, make_objectives
from paretoda.tasks.segmentation.inputs import make_pair_settings
from paretoda.tasks.segmentation.predictor import load_predictor
from paretoda.tasks.settings import make_settings

SHORT = {**QUICK, "steps": 2, "evaluate_every": 2, "select": "last"}
TAUGHT = "alignment.warm_up=0.1"


def objectives(streets, **given):
    source, target, _ = streets
    settings = make_settings({"task": "segmentation", "batch_size": 2, "scheme": "linear", **given})
    pair = make_scene_pair(source, target, make_pair_settings(settings))
    return make_objectives(settings, pair, make_model(settings, pair))


@pytest.mark.parametrize(
    ("given", "part", "name", "value"),
    [
        ({"method": "clan", "options": ["source.focal=2"]}, "source", "focal", 2),
        ({"method": "source-only", "options": ["source.auxiliary=0.4"]}, "source", "auxiliary", 0.4),
        ({"method": "cbst", "options": ["alignment.mirror=true"]}, "alignment", "mirror", True),
        ({"method": "crst", "options": ["alignment.scale=0.9"]}, "alignment", "scale", 0.9),
    ],
)
def test_options_reach_their_part(streets, given, part, name, value):
    assert getattr(objectives(streets, **given)[part], name) == value


def test_gate_and_floor_reach_theirs(streets):
    made = objectives(streets, method="advent+tcm", options=["alignment.gate=0.6", "target.floor=-4"])
    assert made["alignment"].gate.gate == 0.6
    assert made["target"].inner.floor == -4


@pytest.mark.parametrize("scheme", ["linear", "paretoda"])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("clan", ["source.focal=2"]),
        ("source-only", ["source.focal=0.5"]),
        ("advent", ["alignment.gate=0.6", "target.floor=-4"]),
        ("adasegnet", ["alignment.gate=0.99"]),
        ("cbst", [TAUGHT, "alignment.mirror=true", "alignment.scale=0.9"]),
        ("crst", [TAUGHT, "alignment.scale=1.3", "alignment.lrent=0.25", "alignment.priors=true"]),
    ],
)
def test_two_steps_with_each(streets, method, options, scheme):
    source, target, _ = streets
    loss = "none" if method == "source-only" else "tcm"
    run = segment(source, target, method=method, target_loss=loss, scheme=scheme, options=options, **SHORT)
    assert len(run.history) == 2
    assert all(np.isfinite(list(line["losses"].values())).all() for line in run.history)
    assert run.predict(target[:1])[0].shape == target.shape[1:3]


def test_the_focal_loss_is_smaller_and_trains_another_network(streets):
    source, target, _ = streets
    plain, none, focal = (
        segment(source, target, method="source-only", options=options, **SHORT)
        for options in ([], ["source.focal=0"], ["source.focal=2"])
    )
    assert same(plain.model.model, none.model.model)
    assert not same(plain.model.model, focal.model.model)
    assert 0 < focal.history[0]["losses"]["source"] < plain.history[0]["losses"]["source"]


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_a_gate_that_never_opens_leaves_the_source_alone(streets, precision):
    """0.999999 is never passed by a discriminator of two steps: the network is that of the source's loss."""
    source, target, _ = streets
    common = {**SHORT, "target_loss": "none", "scheme": "linear", "precision": precision}
    closed = segment(source, target, method="adasegnet", options=["alignment.gate=0.999999"], **common)
    strong = segment(source, target, method="adasegnet", options=["alignment.strength=1"], **common)
    nothing = segment(source, target, method="adasegnet", options=["alignment.strength=0"], **common)
    assert same(closed.model.model, nothing.model.model)
    assert not same(closed.model.model, strong.model.model)
    assert [line["losses"]["alignment"] for line in closed.history] == [0, 0]


def test_a_gate_counts_while_two_levels_are_trained_apart(streets):
    source, target, _ = streets
    given = {"method": "advent", "levels": 2, "joined": False, "options": ["alignment.gate=0.5"]}
    run = segment(source, target, **given, **SHORT)
    assert run.history[0]["losses"]["alignment"] <= 1e-8


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("adasegnet", ["alignment.gate=0.4", "alignment.strength=1"]),
        ("cbst", [TAUGHT, "alignment.mirror=true", "alignment.scale=0.9"]),
    ],
)
def test_a_stopped_run_goes_on_to_the_same_weights(streets, tmp_path, method, options):
    source, target, _ = streets
    settings = {**QUICK, "method": method, "options": options, "checkpoint_every": 2}
    goes_on_to_the_same_bytes(source, target, tmp_path, settings)


def test_the_floor_is_kept_with_the_model_and_a_file_without_one_is_read(streets, tmp_path):
    source, target, _ = streets
    run = segment(source, target, tmp_path / "run", method="advent", options=["target.floor=-0.5"], **SHORT)
    directory = RunDirectory(tmp_path / "run")
    alone = load_predictor(directory.model, directory.description)
    assert alone.refiner.floor == -0.5
    refined = alone.probabilities(target[0], refined=True)
    assert torch.equal(refined, run.model.probabilities(target[0], refined=True))
    facts = json.loads(directory.description.read_text())
    del facts["refiner"]["floor"]
    directory.description.write_text(json.dumps(facts))
    older = load_predictor(directory.model, directory.description)
    assert older.refiner.floor is None
    assert not torch.equal(older.probabilities(target[0], refined=True), refined)


def test_the_reference_has_the_same_source_loss():
    given = make_settings(
        {"task": "segmentation", "method": "clan", "options": ["source.focal=2", "alignment.local=3"]}
    )
    assert source_only(given).options == ("source.focal=2",)
    assert source_only(make_settings({"task": "segmentation", "options": ["target.floor=-4"]})).options == ()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"options": ["source.gamma=2"]}, "'cross-entropy' has no option 'gamma'"),
        ({"options": ["source.both=true"]}, "'cross-entropy' has no option 'both'"),
        ({"options": ["source.focal=-1"]}, "focal must be 0 or more"),
        ({"options": ["alignment.gate=1.5"]}, "gate must be an accuracy below 1"),
        ({"options": ["alignment.scale=9"], "method": "cbst"}, "scale must lie in"),
        ({"options": ["target.floor=1"]}, "floor is a logarithm of q"),
    ],
)
def test_what_a_part_refuses_is_said_before_the_training(streets, settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        segment(streets[0], streets[1], **{**SHORT, **settings})


def test_classification_has_no_options_of_the_source():
    with pytest.raises(SettingsError, match="the part one of alignment, target, propagation, guide, scheme: 'source"):
        make_settings({"options": ["source.focal=2"]})
