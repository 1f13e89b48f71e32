"""Runs that begin with another run's model and read no source."""

import os

import numpy as np
import pytest
import torch

from paretoda import ParetoDAClassifier
from paretoda.api import adapt
from paretoda.errors import DataError, RunError, SettingsError
from paretoda.models.backbones import make_backbone
from paretoda.run.directory.directory import RunDirectory
from paretoda.schemes import SCHEMES
from paretoda.tasks.classification.given_run import load_given_run

CLASSES = ["ant", "bee", "cat"]
QUICK = {"steps": 4, "batch_size": 16, "evaluate_every": 2, "refresh_every": 2, "reference": False, "device": "cpu"}


@pytest.fixture
def given(arrays, tmp_path, small):
    """A model of the source alone, which has never seen the target."""
    x, y, *_ = arrays
    return adapt((x, y, CLASSES), out=tmp_path / "given", **{**small, "method": "source-only"}).directory


@pytest.fixture
def rest(small):
    """Settings of a run that begins with another one, whose network has its widths already."""
    return {name: value for name, value in small.items() if name != "bottleneck"}


def turn(x, angle):
    """Turn features in the planes of their first and second, third and fourth, ... values."""
    even, odd = x[:, ::2], x[:, 1::2]
    sides = even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)
    return np.stack(sides, axis=2).reshape(x.shape).astype(np.float32)


def accuracy(run, x, y):
    return np.mean(np.array(run.predict(x)) == np.array(CLASSES)[y])


def test_the_model_is_adapted_to_the_target_without_its_source(given, arrays, rest):
    x, y = turn(arrays[0], 1.1), arrays[1]
    run = adapt(target=x, from_run=given, **{**rest, "steps": 60})
    before = load_given_run(str(given))
    assert accuracy(run, x, y) > accuracy(before, x, y) + 0.1
    assert set(run.history[0]["losses"]) == {"target", "propagation"}
    assert run.classes == tuple(CLASSES)
    # The head says what the classes are, and stays; the encoder learns where the target has them.
    for name, tensor in run.model.model.state_dict().items():
        same = torch.equal(tensor, before.model.state_dict()[name])
        assert same == name.startswith("head."), name


def test_the_head_learns_where_losses_are_let_to_it(given, arrays):
    run = adapt(target=arrays[2], from_run=given, head_losses=("target",), **QUICK)
    assert not torch.equal(run.last.model.head.weight, load_given_run(str(given)).model.head.weight)


def test_the_given_model_is_a_candidate_and_the_reference(given, arrays, rest):
    run = adapt(target=arrays[2], from_run=given, **{**rest, "steps": 20, "reference": True})
    assert run.candidates[0]["step"] == 0
    assert "dev" not in run.scores
    assert "source-risk" not in run.scores
    ruined = adapt(
        target=arrays[2], from_run=given, lr=30.0, **{**rest, "steps": 20, "reference": True, "select": "last"}
    )
    assert "below the model that the run began with" in ruined.negative_transfer
    kept = adapt(target=arrays[2], from_run=given, lr=30.0, **{**rest, "steps": 20, "select": "mixval"})
    if kept.chosen == 0:
        whole = load_given_run(str(given)).model.state_dict()
        assert all(torch.equal(tensor, whole[name]) for name, tensor in kept.model.model.state_dict().items())


def test_a_run_is_repeated_from_its_files_and_resumed_to_the_same_bytes(files, given, rest, tmp_path):
    (files / "source.npz").unlink()  # nothing reads it
    names = {"target": files / "target.npz", "from_run": given}
    adapt(**names, out=tmp_path / "whole", **rest)
    settings, inputs = RunDirectory(tmp_path / "whole").read_config()
    assert set(inputs) == {"target"}
    assert settings.from_run == str(given)

    def stop(taken, _report):
        if taken == 20:
            raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        adapt(**names, out=tmp_path / "stopped", after=[stop], **rest)
    adapt(out=tmp_path / "stopped", resume=True)
    bytes_of = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert bytes_of[0] == bytes_of[1]
    page = (tmp_path / "whole" / "report.html").read_text()
    assert "source-free" in page
    assert "held-out source" not in page
    assert "source-free domain adaptation: on the model of given" in (tmp_path / "whole" / "README.md").read_text()


def test_a_drifting_target_is_followed_run_after_run(arrays, given, rest, tmp_path):
    x, y = arrays[0], arrays[1]
    last = given
    for number in range(1, 6):
        last = adapt(target=turn(x, 0.3 * number), from_run=last, out=tmp_path / f"{number}", **rest)
    assert last.settings.from_run == str(tmp_path / "4")
    at_once = adapt(target=turn(x, 1.5), from_run=given, **rest)
    assert accuracy(last, turn(x, 1.5), y) > 0.9
    assert accuracy(at_once, turn(x, 1.5), y) < 0.5


def test_a_few_labels_of_the_target_train_as_well(arrays, given):
    x, z = arrays[2], arrays[3]
    few = np.concatenate([np.flatnonzero(z == label)[:4] for label in range(3)])
    run = adapt(target=x, from_run=given, target_labels=(x[few], z[few], CLASSES), **QUICK)
    assert set(run.history[0]["losses"]) == {"target", "propagation", "labels"}


def test_the_estimators_fit_the_target_alone(arrays, given, rest):
    x, y = turn(arrays[0], 1.1), arrays[1]
    rest.pop("checkpoint_every")
    run = adapt(target=x, from_run=given, **rest)
    model = ParetoDAClassifier(from_run=given, **rest).fit(x)
    assert model.classes_.tolist() == CLASSES
    assert model.predict(x).tolist() == run.predict(x)
    again = ParetoDAClassifier(from_run=given, **rest).fit(x, np.full(len(x), -1), np.full(len(x), -2))
    assert again.predict(x).tolist() == run.predict(x)
    with pytest.raises(ValueError, match="stands in the source's place: give rows of the target only"):
        ParetoDAClassifier(from_run=given, **rest).fit(x, y, np.where(np.arange(len(x)) % 2, 1, -1))


@pytest.mark.parametrize("frozen", [True, False])
def test_images_are_read_as_the_given_run_reads_them(tmp_path, frozen):
    rng = np.random.default_rng(0)
    y = np.arange(48) % 3
    x = rng.integers(0, 60, (48, 24, 24, 3), dtype=np.uint8)
    x[np.arange(48), :, :, y] += 150
    torch.save(make_backbone("cnn", (3, 24, 24)).state_dict(), tmp_path / "cnn.pth")
    network = {"backbone": "cnn", "backbone_weights": str(tmp_path / "cnn.pth"), "frozen": frozen, "bottleneck": 8}
    adapt((x, y, CLASSES), out=tmp_path / "given", method="source-only", **network, **QUICK)
    run = adapt(target=255 - x, from_run=tmp_path / "given", out=tmp_path / "run", **QUICK)
    before = load_given_run(str(tmp_path / "given"))
    assert run.model.transform.to_json() == before.transform.to_json()
    assert (run.model.backbone is None) == (not frozen)
    assert np.array_equal(load_given_run(str(tmp_path / "run")).predict_proba(x), run.predict_proba(x))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("loss", ["aad", "im+centroids", "mean-teacher"])
def test_every_scheme_trains_without_a_source(given, arrays, scheme, loss):
    run = adapt(target=arrays[2], from_run=given, target_loss=loss, scheme=scheme, **{**QUICK, "steps": 2})
    assert len(run.history) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "dann"}, "aligns the target with a source, and --from has none; leave out --method"),
        ({"target_loss": "none"}, "leave out --target-loss none"),
        ({"scheme": "metaalign"}, "needs a source, and --from has none; leave out --scheme"),
        ({"select": "im+dev"}, "'dev' scores by labels of a source"),
        ({"scaling": "joint"}, "--scaling is per-domain, or source"),
        ({"bottleneck": 16, "frozen": True}, "leave out --frozen, --bottleneck"),
        ({"loss_weights": (1, 1, 1), "scheme": "linear"}, "3 numbers for the losses target, propagation"),
    ],
)
def test_settings_that_need_a_source_are_refused(given, arrays, settings, message):
    with pytest.raises(SettingsError, match=message):
        adapt(target=arrays[2], from_run=given, **settings)


def test_mistakes_are_told_in_one_sentence(given, arrays, tmp_path, small):
    x, y, t, _ = arrays
    with pytest.raises(SettingsError, match="stands in the source's place; leave out --source"):
        adapt((x, y), t, from_run=given)
    with pytest.raises(SettingsError, match="adapts a run to a target; give --target"):
        adapt(from_run=given)
    with pytest.raises(RunError, match=r"--from: .* is missing: the run has not finished"):
        adapt(target=t, from_run=tmp_path / "nowhere")
    with pytest.raises(DataError, match="the run reads 12 features, the target has 11; give the same ones"):
        adapt(target=t[:, :11], from_run=given)
    with pytest.raises(DataError, match="the run reads features, the target is images; give the same kind"):
        adapt(target=np.zeros((30, 8, 8, 3), np.uint8), from_run=given)
    with pytest.raises(DataError, match="the target has 5 samples; collect at least 20"):
        adapt(target=t[:5], from_run=given)
    with pytest.raises(SettingsError, match="this run was not written to a directory; give --out"):
        adapt(target=t, from_run=adapt((x, y), t, **{**small, "steps": 2}))


def test_runs_that_are_more_than_one_network_are_refused(arrays, tmp_path, small):
    x, y, t, _ = arrays
    adapt((x, y), t, tmp_path / "several", members=2, **{**small, "steps": 2})
    with pytest.raises(RunError, match="has several members; train one with --members 1"):
        adapt(target=t, from_run=tmp_path / "several")


def test_a_strangers_run_executes_nothing(arrays, given, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    torch.save({"model": Evil()}, given / "model.safetensors")
    with pytest.raises(RunError, match="damaged or not a model"):
        adapt(target=arrays[2], from_run=given)
    assert not (tmp_path / "executed").exists()
