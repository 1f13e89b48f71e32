"""What every strategy must be: listed, configured by its fields, usable by name, resumable, honest about its limits."""

import dataclasses
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from run.conftest import SMALL, blobs

import paretoda.training.strategies
from paretoda.api import adapt
from paretoda.core.problem import reads_guide
from paretoda.data import open_samples
from paretoda.errors import RunError, SettingsError
from paretoda.run.directory.directory import RunDirectory
from paretoda.schemes import SCHEMES
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.settings import make_settings
from paretoda.training.strategies import STRATEGIES
from paretoda.training.strategy import Strategy

each = pytest.mark.parametrize("name", STRATEGIES)
QUICK = {"steps": 12, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False}
OTHER = {
    "metaalign": "scheme.rate=20",
    "auxilearn": "scheme.combination=monotone",
    "hypernetwork": "scheme.concentration=3",
    "pga": "scheme.flatness=1",
}
"""An option of each that must change what is trained."""


def write(folder):
    x, y, t, _ = blobs()
    np.savez(folder / "source.npz", x=x, y=y, classes=np.array(["ant", "bee", "cat"]))
    np.savez(folder / "target.npz", x=t)
    return folder / "source.npz", folder / "target.npz"


def test_every_file_is_in_the_table_and_no_name_is_a_schemes():
    folder = Path(inspect.getfile(paretoda.training.strategies)).parent
    files = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    assert files == {make.__module__.rsplit(".", 1)[1] for make in STRATEGIES.values()}
    assert not set(STRATEGIES) & set(SCHEMES)


@each
def test_it_is_a_frozen_dataclass_with_a_documented_reference(name):
    one, two = STRATEGIES[name](), STRATEGIES[name]()
    assert isinstance(one, Strategy)
    assert one == two
    assert hash(one) == hash(two)
    assert "_memory" not in repr(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.anything = 1
    assert "Args:" in type(one).__doc__
    assert inspect.getmodule(type(one)).__doc__
    assert isinstance(reads_guide(one), bool)


@each
@pytest.mark.parametrize("settings", [{}, {"bn": "per-domain"}, {"precision": "bf16"}, {"method": "cdan", "clip": 1.0}])
def test_it_trains(name, settings):
    x, y, t, _ = blobs()
    run = adapt((x, y), t, scheme=name, **QUICK, **settings)
    assert np.isfinite([list(line["losses"].values()) for line in run.history]).all()
    assert len(run.history) == 12


@each
def test_its_options_are_heard(name):
    x, y, t, _ = blobs()
    one, other = (adapt((x, y), t, scheme=name, **QUICK, options=options) for options in ((), (OTHER[name],)))
    assert one.history[-1]["losses"] != other.history[-1]["losses"]


@each
def test_a_run_that_was_cut_off_ends_with_the_same_bytes(name, tmp_path):
    class Killed(BaseException):
        pass

    def kill(taken, _report):
        if taken == 27:  # an odd number after the checkpoint at 20, inside an interval
            raise Killed

    source, target = write(tmp_path)
    settings = {**SMALL, "scheme": name}
    adapt(source, target, tmp_path / "whole", **settings)
    with pytest.raises(Killed):
        adapt(source, target, tmp_path / "cut", after=[kill], **settings)
    adapt(out=tmp_path / "cut", resume=True)
    for file in ("model.safetensors", "metrics.jsonl", "predictions.csv", "results.json", "model.json"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file


@each
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"voting": "last"}, "compares no gradients; leave out --voting"),
        ({"every": 3}, "leave out --every"),
        ({"average": 0.5, "every": 2}, "leave out --every, --average"),
        ({"calibrate": True}, "leave out --calibrate"),
        ({"loss_weights": (1, 1, 1)}, "loss_weights are for the scheme 'linear'"),
    ],
)
def test_settings_that_it_would_not_hear_are_refused(name, settings, said):
    with pytest.raises(SettingsError, match=said):
        make_settings({"scheme": name, "method": "dann+tcm", **settings})


@each
def test_one_loss_alone_is_refused_in_one_sentence(name):
    x, y, t, _ = blobs()
    with pytest.raises(SettingsError, match=r"scheme\.train=NAME|choose a method or a target loss as well"):
        adapt((x, y), t, method="source-only", target_loss="none", scheme=name, **QUICK)


def test_other_combinations_without_sense_are_refused():
    for name in ("metaalign", "auxilearn", "pga"):
        with pytest.raises(SettingsError, match="take --precision bf16 or 32"):
            make_settings({"scheme": name, "precision": "16"})
    x, y, t, _ = blobs()
    with pytest.raises(SettingsError, match="leave out --head-losses"):
        adapt((x, y), t, scheme="auxilearn", head_losses=("source",), **QUICK)
    with pytest.raises(SettingsError, match="lowered 4 times alone"):
        adapt((x, y), t, scheme="hypernetwork", method="mcd", options=("alignment.encoder_updates=4",), **QUICK)
    with pytest.raises(SettingsError, match="'metaalign' has no option 'rat'; did you mean 'rate'"):
        adapt((x, y), t, scheme="metaalign", options=("scheme.rat=3",), **QUICK)


def test_a_trained_front_answers_for_every_preference(tmp_path):
    source, target = write(tmp_path)
    settings = {**SMALL, "scheme": "hypernetwork", "method": "dann+tcm", "select": "ensemble"}
    run = adapt(source, target, tmp_path / "run", **settings)
    directory, samples = RunDirectory(tmp_path / "run"), open_samples(target, labelled=False)
    assert json.loads(directory.description.read_text())["architecture"]["losses"] == ["source", "alignment", "target"]
    loaded = load_predictor(directory.model, directory.description)
    equal = loaded.probabilities(samples)
    assert np.array_equal(equal, run.model.probabilities(samples))
    assert np.array_equal(loaded.with_preference((2, 2, 2)).probabilities(samples), equal)
    corner = loaded.with_preference((1, 0, 0)).probabilities(samples)
    assert not np.allclose(corner, equal)
    assert np.array_equal(run.model.with_preference((1, 0, 0)).probabilities(samples), corner)
    assert np.array_equal(loaded.probabilities(samples), equal), "another preference is another predictor"
    refined = loaded.with_preference((1, 0, 0)).probabilities(samples, refined=True)
    assert not np.allclose(refined, loaded.probabilities(samples, refined=True))
    with pytest.raises(RunError, match="a number for each of source, alignment, target"):
        loaded.with_preference((1, 0))
    plain = adapt(source, target, **QUICK)
    with pytest.raises(RunError, match="train one with --scheme hypernetwork"):
        plain.model.with_preference((1, 0, 0))


def test_the_reference_has_no_use_for_the_options_of_parts_that_it_has_not():
    """Options of the alignment or the scheme once broke the comparison with source-only, after all the training."""
    x, y, t, _ = blobs()
    options = ("scheme.rate=2", "alignment.hidden=8")
    run = adapt((x, y), t, scheme="metaalign", options=options, **{**QUICK, "reference": True, "steps": 4})
    assert len(run.history) == 4
