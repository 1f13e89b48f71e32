"""The main job: a model that works on the target, the same whenever it is run, without a look at target labels."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from paretoda.api import adapt
from paretoda.data import open_samples
from paretoda.errors import RunError, SettingsError
from paretoda.evaluation.validators import VALIDATORS
from paretoda.io.toml import read_toml, to_toml
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.schemes import SCHEMES
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.settings import make_settings


def states_equal(one, two):
    a, b = one.model.state_dict(), two.model.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def test_a_run_leaves_everything_and_predicts_alone(files, small):
    refined = {**small, "target_loss": "tcm+propagation"}
    run = adapt(files / "source.npz", files / "target.npz", files / "run", **refined)
    directory = RunDirectory(files / "run")
    names = {path.name for path in directory.path.iterdir()}
    assert names >= {
        "config.toml", "environment.json", "metrics.jsonl", "model.safetensors", "model.json", "predictions.csv",
        "results.json", "README.md", "checkpoint",
    }  # fmt: skip
    assert not list(directory.checkpoint.parent.glob("candidate-*"))
    lines = directory.read_metrics()
    assert [line["step"] for line in lines] == list(range(1, 41))
    assert set(lines[0]["weights"]) == {"source", "alignment", "target", "propagation"}
    assert json.loads(directory.results.read_text())["chosen_step"] == run.chosen
    loaded = load_predictor(directory.model, directory.description)
    samples = open_samples(files / "target.npz", labelled=False)
    assert np.array_equal(loaded.probabilities(samples), run.model.probabilities(samples))
    assert np.array_equal(loaded.probabilities(samples, refined=True), run.model.probabilities(samples, refined=True))
    assert loaded.temperature == run.model.temperature >= 1
    calibrated = loaded.probabilities(samples, calibrated=True)
    assert np.array_equal(calibrated.argmax(1), loaded.probabilities(samples).argmax(1))
    assert f"the temperature {run.model.temperature:.4g}" in directory.card.read_text()
    rows = directory.predictions.read_text().splitlines()
    assert len(rows) == 201
    assert rows[1].split(",")[1] == run.predict(files / "target.npz")[0]
    settings, inputs = directory.read_config()
    assert settings == run.settings
    assert inputs["source"] == str((files / "source.npz").resolve())


def test_the_same_settings_give_the_same_bytes_and_another_seed_does_not(files, small):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.rand(3)  # the caller's chance must not matter
        adapt(files / "source.npz", files / "target.npz", files / name, seed=seed, **small)
    a, b, c = ((files / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    assert str(files).encode() not in a
    assert "ant, bee, cat" in (card := (files / "a" / "README.md").read_text())
    assert card.replace("run a", "run b") == (files / "b" / "README.md").read_text()
    assert str(files) not in card
    assert "| bottleneck |" in card
    assert "convention" not in card  # a setting of segmentation


def test_the_targets_labels_are_never_read(files, arrays, small):
    t = arrays[2]
    without = adapt(files / "source.npz", files / "target.npz", files / "a", **small)
    with_labels = adapt(files / "source.npz", files / "labelled.npz", files / "b", **small)
    assert states_equal(without.model, with_labels.model)
    np.savez(files / "nonsense.npz", x=t, y=np.array(["not", "labels"]), classes=np.array([1.5]))
    assert states_equal(adapt(files / "source.npz", files / "nonsense.npz", **small).model, without.model)
    assert (files / "a" / "model.safetensors").read_bytes() == (files / "b" / "model.safetensors").read_bytes()


def test_files_arrays_and_directories_make_no_difference(files, arrays, small):
    x, y, t, _ = arrays
    one = adapt(files / "source.npz", files / "target.npz", files / "run", **small)
    two = adapt((x, y, ["ant", "bee", "cat"]), t, **small)
    assert states_equal(one.model, two.model)
    assert states_equal(one.last, two.last)
    assert one.history == two.history


@pytest.mark.parametrize("stop", [10, 25, 40])
def test_a_run_that_was_cut_off_ends_with_the_same_bytes(files, small, stop):
    """As after a kill: everything after the last checkpoint is lost, half a line of metrics is left."""

    class Killed(BaseException):
        pass

    def kill(taken, _report):
        if taken == stop:
            raise Killed

    adapt(files / "source.npz", files / "target.npz", files / "whole", **small)
    with pytest.raises(Killed):
        adapt(files / "source.npz", files / "target.npz", files / "cut", after=[kill], **small)
    assert not (files / "cut" / "model.safetensors").exists()
    with (files / "cut" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99, "los')
    adapt(out=files / "cut", resume=True)
    for name in ("model.safetensors", "metrics.jsonl", "predictions.csv", "results.json", "model.json"):
        assert (files / "cut" / name).read_bytes() == (files / "whole" / name).read_bytes(), name


def test_a_run_killed_before_its_first_checkpoint_begins_again(files, small):
    run = RunDirectory(files / "cut")
    run.begin(make_settings(small), {"source": str(files / "source.npz"), "target": str(files / "target.npz")})
    adapt(out=files / "cut", resume=True)
    assert run.model.exists()


@pytest.mark.parametrize("method", ALIGNMENTS)
@pytest.mark.parametrize("target_loss", [name for name in TARGET_LOSSES if name != "novelty"])  # for open label sets
def test_every_method_runs_with_every_target_loss(arrays, method, target_loss):
    x, y, t, _ = arrays
    run = adapt((x, y), t, method=method, target_loss=target_loss, steps=6, batch_size=16, bottleneck=8, select="last")
    assert np.isfinite([list(line["losses"].values()) for line in run.history]).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_runs(arrays, scheme):
    x, y, t, _ = arrays
    run = adapt((x, y), t, scheme=scheme, steps=6, batch_size=16, bottleneck=8, select="last", reference=False)
    assert len(run.history) == 6


@pytest.mark.parametrize("losses", ["im", "none", "mcc+propagation"])
def test_the_guide_tcm_asks_for_its_loss(arrays, losses):
    x, y, t, _ = arrays
    with pytest.raises(SettingsError, match="the guide 'tcm' uses the discriminators of the target loss 'tcm': add it"):
        adapt((x, y), t, guide="tcm", target_loss=losses, steps=2)
    adapt((x, y), t, guide="tcm", target_loss=losses, scheme="linear", steps=2, select="last", reference=False)


def test_the_guide_tcm_finds_its_loss_at_any_place(arrays):
    x, y, t, _ = arrays
    settings = {"steps": 2, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False}
    run = adapt((x, y), t, guide="tcm", target_loss="propagation+tcm", members=1, **settings)
    assert run.history[0]["guide_loss"] >= 0


@pytest.mark.parametrize("guide", GUIDES)
def test_every_guide_guides(arrays, guide):
    x, y, t, _ = arrays
    settings = {"steps": 6, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False}
    run = adapt((x, y), t, guide=guide, target_loss="tcm+propagation", **settings)
    read = [line["guide_loss"] for line in run.history]
    assert [loss is not None for loss in read] == [True, False, False, False, False, True]  # every fifth step
    assert min(loss for loss in read if loss is not None) >= 0


@pytest.mark.parametrize(
    "settings",
    [
        {"voting": "all"},
        {"every": 3},
        {"average": 0.9},
        {"every": 2, "average": 0.5},
        {"calibrate": True},
        {"bn": "per-domain"},
        {"scheme": "linear", "loss_weights": (1.0, 0.3, 0.3, 1.0)},
        {"head_losses": ("source",)},
        {"precision": "bf16"},
        {"clip": 0.1, "schedule": "constant", "label_smoothing": 0.1, "class_balanced": True},
        {"scaling": "none"},
    ],
)
def test_every_option_changes_the_weights(arrays, settings):
    x, y, t, _ = arrays
    common = {"steps": 8, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False}
    plain, changed = adapt((x, y), t, **common), adapt((x, y), t, **common, **settings)
    assert not states_equal(plain.model, changed.model)


def test_the_ensemble_chooses_and_source_only_is_the_reference(files, small):
    heard = []
    run = adapt(
        files / "source.npz",
        files / "target.npz",
        callbacks=Callbacks(say=heard.append),
        **{**small, "select": "ensemble", "reference": True},
    )
    assert set(run.scores) == set(VALIDATORS)
    assert len(run.candidates) == 2
    assert run.chosen in (20, 40)
    assert any("mean rank" in sentence for sentence in heard)
    assert tuple(heard) == run.sentences


def test_directories_that_cannot_be_used_are_refused(files, small):
    adapt(files / "source.npz", files / "target.npz", files / "run", **small)
    with pytest.raises(RunError, match="already has a run"):
        adapt(files / "source.npz", files / "target.npz", files / "run", **small)
    adapt(files / "source.npz", files / "target.npz", files / "run", overwrite=True, **{**small, "seed": 5})
    assert RunDirectory(files / "run").read_config()[0].seed == 5
    with pytest.raises(RunError, match="not empty and contains no run"):
        adapt(files / "source.npz", files / "target.npz", files, overwrite=True, **small)
    with pytest.raises(RunError, match="is a file"):
        adapt(files / "source.npz", files / "target.npz", files / "source.npz", **small)
    with pytest.raises(RunError, match=r"config\.toml is missing"):
        adapt(out=files / "nowhere", resume=True)
    steps = small["steps"]
    with pytest.raises(SettingsError, match=rf"a resumed run keeps its settings; leave out steps \({steps}, not 3\)$"):
        adapt(out=files / "run", resume=True, **{**small, "steps": 3, "seed": 5})


@pytest.mark.parametrize("given", [{"method": "dann+mcc"}, {"preset": "paper", "method": "cdan-e"}])
def test_the_same_settings_may_be_given_again_when_a_run_is_resumed(files, small, given):
    def stop(taken, _report):
        if taken == 12:
            raise KeyboardInterrupt

    data, settings = (files / "source.npz", files / "target.npz"), {**small, **given, "checkpoint_every": 5}
    whole = adapt(*data, **settings)
    with pytest.raises(KeyboardInterrupt):
        adapt(*data, files / "run", after=[stop], **settings)
    with pytest.raises(SettingsError, match=r"leave out target_loss \((mcc|tcm), not none\)"):
        adapt(*data, files / "run", resume=True, **{**settings, "method": given["method"].partition("+")[0] + "+none"})
    assert states_equal(adapt(*data, files / "run", resume=True, **settings).model, whole.model)


def test_bad_settings_get_one_sentence(files):
    for settings, message in [
        ({"method": "dannn"}, "there is no method 'dannn'; did you mean 'dann'"),
        ({"stepps": 3}, "there is no setting 'stepps'; did you mean 'steps'"),
        ({"steps": 0}, "steps: Input should be greater than or equal to 1"),
        ({"method": "dann+mcq"}, "there is no target loss 'mcq'"),
        ({"method": "dann+im", "target_loss": "tcm"}, "contradict each other"),
        ({"loss_weights": (1.0, 1.0)}, "loss_weights are for the scheme 'linear'"),
        ({"scheme": "linear", "loss_weights": (1.0, 1.0)}, "2 numbers for the losses source, alignment, target"),
        ({"head_losses": ("sauce",)}, "head_losses names 'sauce'"),
        ({"device": "tpu9"}, "device 'tpu9' cannot be used"),
        ({"frozen": True}, "features already"),
    ]:
        with pytest.raises(SettingsError, match=message):
            adapt(files / "source.npz", files / "target.npz", files / "run", **settings)
        assert not (files / "run").exists(), settings


def test_settings_survive_toml(tmp_path):
    settings = make_settings({"method": "cdan+im", "loss_weights": (1.0, 0.5, 0.25), "scheme": "linear", "clip": 1.5})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(settings.model_dump()), encoding="utf-8")
    assert make_settings(read_toml(path)) == settings
    assert (settings.method, settings.target_loss) == ("cdan", "im")


def test_a_broken_checkpoint_falls_back_to_the_one_before_and_a_stranger_is_refused(files, small):
    from paretoda.training.checkpoint import CheckpointError, previous_path

    class Killed(BaseException):
        pass

    def kill(taken, _report):
        if taken == 35:
            raise Killed

    with pytest.raises(Killed):
        adapt(files / "source.npz", files / "target.npz", files / "cut", after=[kill], **small)
    checkpoint = RunDirectory(files / "cut").checkpoint
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    adapt(out=files / "cut", resume=True)
    adapt(files / "source.npz", files / "target.npz", files / "whole", **small)
    assert (files / "cut" / "model.safetensors").read_bytes() == (files / "whole" / "model.safetensors").read_bytes()
    import pickle

    for path in (checkpoint, previous_path(checkpoint)):
        path.write_bytes(pickle.dumps({"taken": 3}))
    (files / "cut" / "model.safetensors").unlink()  # a finished run is not resumed
    with pytest.raises(CheckpointError, match="no checkpoint can be read"):
        adapt(out=files / "cut", resume=True)


def test_a_model_that_is_no_model_is_refused(files, small):
    import pickle

    adapt(files / "source.npz", files / "target.npz", files / "run", **small)
    run = RunDirectory(files / "run")
    good = run.model.read_bytes()
    assert load_file(run.model)
    for content, message in [
        (pickle.dumps([1]), "cannot be read"),
        (good[:100], "cannot be read"),
        (b"", "cannot be read"),
    ]:
        run.model.write_bytes(content)
        with pytest.raises(RunError, match=message):
            load_predictor(run.model, run.description)
    run.model.write_bytes(good)
    facts = json.loads(run.description.read_text())
    facts["architecture"]["bottleneck"] = 9
    run.description.write_text(json.dumps(facts))
    with pytest.raises(RunError, match="do not fit together"):
        load_predictor(run.model, run.description)


def test_options_reach_their_parts(files, small):
    told = (
        "alignment.hidden=8", "target.width=4", "propagation.k=2", "guide.k=3", "scheme.lean=1.5",
        "scheme.prior=[1, 0.3, 0.3, 1]",
    )  # fmt: skip
    small["target_loss"] = "tcm+propagation"
    run = adapt(files / "source.npz", files / "target.npz", files / "run", **small, options=told)
    plain = adapt(files / "source.npz", files / "target.npz", **small)
    assert not states_equal(run.model, plain.model)
    settings, _ = RunDirectory(files / "run").read_config()
    assert settings.options == told
    assert settings.part_options == {
        "alignment": {"hidden": 8}, "target": {"width": 4}, "propagation": {"k": 2}, "guide": {"k": 3},
        "scheme": {"lean": 1.5, "prior": [1, 0.3, 0.3, 1]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("alignment.hiden=8", "'dann' has no option 'hiden'; did you mean 'hidden'"),
        ("scheme.floor=8", "'paretoda' has no option 'floor'; choose from lean, normalise, prior"),
        ("hidden=8", "options are written as part.name=value"),
        ("agreement.k=8", "the part one of alignment, target, propagation, guide, scheme"),
        ("guide.k=0", "k must be 1 or more"),
        ("scheme.lean=x", "lean"),
    ],
)
def test_a_wrong_option_is_one_sentence(files, small, option, words):
    with pytest.raises(SettingsError, match=words):
        adapt(files / "source.npz", files / "target.npz", **small, options=(option,))


def test_several_target_losses_are_objectives_of_their_own(files, small):
    run = adapt(files / "source.npz", files / "target.npz", **{**small, "method": "dann+tcm+mcc"})
    assert set(run.history[-1]["weights"]) == {"source", "alignment", "target", "mcc"}
    assert run.settings.target_loss == "tcm+mcc"
    assert run.predict_proba(files / "target.npz", refined=True).shape[1] == len(run.classes)
    for wrong in ("tcm+tcm", "tcm+none"):
        with pytest.raises(SettingsError, match="makes no sense"):
            make_settings({"target_loss": wrong})
    with pytest.raises(SettingsError, match="no target loss 'propagatoin'; did you mean 'propagation'"):
        make_settings({"method": "dann+tcm+propagatoin"})


def test_joined_the_plain_sum_is_the_same_and_the_scheme_weighs_two(files, small):
    given = {**small, "method": "dann+tcm", "steps": 6}
    apart = adapt(files / "source.npz", files / "target.npz", scheme="linear", **given)
    one = adapt(files / "source.npz", files / "target.npz", scheme="linear", joined=True, **given)
    a, b = apart.last.model.state_dict(), one.last.model.state_dict()
    for key in a:
        torch.testing.assert_close(a[key], b[key], rtol=1e-3, atol=1e-5)
    weighed = adapt(files / "source.npz", files / "target.npz", joined=True, **given)
    assert set(weighed.history[-1]["weights"]) == {"source", "target"}
