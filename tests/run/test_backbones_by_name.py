"""Runs with networks from outside: they train, are written down so that they can be repeated, and predict alone."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from models.tiny_networks import saved, size

import paretoda
from paretoda.cli import main
from paretoda.data import open_samples
from paretoda.errors import BackboneError, RunError, WeightsError
from paretoda.models.backbones import user_module as own_module
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.predictor import load_predictor

QUICK = {"steps": 3, "batch_size": 8, "bottleneck": 8, "select": "last", "reference": False, "device": "cpu"}
FACTORY = """
from pathlib import Path
from torch import nn
Path("sprung").touch()

def network(channels):
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten())
"""


def coloured(n=40, size=32):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    x = rng.integers(0, 90, (n, size, size, 3))
    x[np.arange(n), :, :, y] += 120
    return x.astype(np.uint8), y


def load(run):
    return load_predictor(RunDirectory(run).model, RunDirectory(run).description)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kind", ["dinov2", "convnext"])
def test_a_run_predicts_without_the_folder_that_it_began_with(kind, frozen, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    x, y = coloured()
    folder = saved(tmp_path / "net", kind)
    monkeypatch.chdir(tmp_path)
    given = {**QUICK, "backbone": "hf:net", "frozen": frozen, "image_size": size(kind)}
    run = paretoda.adapt((x, y, ["r", "g", "b"]), x, tmp_path / "run", **given)
    assert run.settings.backbone == f"hf:{folder}"  # whole, so that it can be repeated from anywhere
    assert run.settings.backbone_weights == "default"
    wanted = run.predict_proba(x)
    shutil.rmtree(folder)
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("nothing is asked of the network"))
    found = load(tmp_path / "run").probabilities(open_samples(x, labelled=False))
    assert np.allclose(found, wanted, atol=1e-6)


def test_grey_images_become_coloured_and_sizes_are_the_networks(tmp_path):
    pytest.importorskip("transformers")
    x, y = coloured(size=20)
    run = paretoda.adapt((x[..., 0], y, ["r", "g", "b"]), x[..., 0], backbone=f"hf:{saved(tmp_path / 'net')}", **QUICK)
    assert run.model.model.architecture.input_shape == (3, 32, 32)
    with pytest.raises(BackboneError, match="multiples of 8 pixels, not 20x20; take --image-size"):
        paretoda.adapt((x, y, ["r", "g", "b"]), x, backbone=f"hf:{tmp_path / 'net'}", image_size=20, **QUICK)


def test_a_pretrained_network_from_outside_learns_at_a_tenth_of_the_rate(tmp_path):
    pytest.importorskip("transformers")
    from paretoda.models.classifier import make_model, parameter_groups

    model = make_model(f"hf:{saved(tmp_path / 'net')}", (3, 32, 32), 3, weights="default")
    slow, fast = parameter_groups(model, 0.1)
    assert (slow["lr"], fast["lr"]) == (pytest.approx(0.01), 0.1)
    assert len(slow["params"]) == len(list(model.encoder.backbone.parameters()))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The name of a factory in the present folder, which nobody has consented to yet."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own_module, "_consented", set())
    monkeypatch.delenv(own_module.TRUSTED, raising=False)
    yield f"{name}.network"
    sys.modules.pop(name, None)


def forget(own, place):
    """As in a new process that has not run the code."""
    own_module._consented.clear()
    sys.modules.pop(own.partition(".")[0])
    (place / "sprung").unlink()


@pytest.mark.parametrize("frozen", [False, True])
def test_whoever_starts_a_run_consents_and_nobody_else(frozen, own, tmp_path, monkeypatch):
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    x, y = coloured()
    run = paretoda.adapt((x, y, ["r", "g", "b"]), x, tmp_path / "run", backbone=f"module:{own}", frozen=frozen, **QUICK)
    wanted = run.predict_proba(x)
    forget(own, tmp_path)
    with pytest.raises(RunError, match=f"paretoda --trust-module {own}"):
        load(tmp_path / "run")
    np.savez(tmp_path / "new.npz", x=x)
    for command in (["predict", "run", "new.npz"], ["report", "run"]):
        with pytest.raises(SystemExit) as stop:
            main(command)
        assert stop.value.code == 2
    assert not (tmp_path / "sprung").exists()
    monkeypatch.setenv(own_module.TRUSTED, "")  # so that what the command sets is taken back
    with pytest.raises(SystemExit) as stop:
        main(["--trust-module", own, "predict", "run", "new.npz", "--out", "p.csv", "--quiet"])
    assert stop.value.code == 0
    assert (tmp_path / "sprung").exists()
    assert os.environ[own_module.TRUSTED] == own
    assert np.allclose(load(tmp_path / "run").probabilities(open_samples(x, labelled=False)), wanted, atol=1e-6)


def test_a_resumed_run_asks_again(own, tmp_path, capsys):
    x, y = coloured()
    np.savez(tmp_path / "s.npz", x=x, y=y, classes=np.array(["r", "g", "b"]))
    given = (str(tmp_path / "s.npz"), str(tmp_path / "s.npz"), tmp_path / "run")
    paretoda.adapt(*given, backbone=f"module:{own}", checkpoint_every=2, **QUICK)
    (tmp_path / "run" / "model.safetensors").unlink()
    forget(own, tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["adapt", "--out", "run", "--resume", "--quiet"])
    assert stop.value.code == 2
    assert f"--trust-module {own}" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()


def test_the_weights_of_a_run_are_written_down_whole(tmp_path, monkeypatch):
    from paretoda.models.backbones import make_backbone

    x, y = coloured()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    torch.save(make_backbone("cnn", (3, 32, 32)).state_dict(), tmp_path / "folder" / "w.pth")
    told = []
    run = paretoda.adapt(
        (x, y, ["r", "g", "b"]),
        x,
        tmp_path / "run",
        backbone="cnn",
        backbone_weights="folder",
        callbacks=paretoda.run.callbacks.Callbacks(say=told.append),
        **QUICK,
    )
    assert run.settings.backbone_weights == str(tmp_path / "folder")
    assert any("cnn begins with the weights" in line for line in told)
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "folder" / "w.pth")
    with pytest.raises(WeightsError, match="another model"):
        paretoda.adapt((x, y, ["r", "g", "b"]), x, backbone="cnn", backbone_weights="folder", **QUICK)


def test_a_description_that_asks_for_too_much_is_refused(tmp_path):
    pytest.importorskip("transformers")
    x, y = coloured()
    folder = saved(tmp_path / "net")
    paretoda.adapt((x, y, ["r", "g", "b"]), x, tmp_path / "run", backbone=f"hf:{folder}", **QUICK)
    path = tmp_path / "run" / "model.json"
    known = json.loads(path.read_text())
    for change in ({"hidden_size": 65536}, {"num_hidden_layers": 10**12}, {"model_type": "evil"}, {"patch_size": 4}):
        facts = known["architecture"]["facts"]
        broken = {**facts, "config": {**facts["config"], **change}}
        path.write_text(json.dumps({**known, "architecture": {**known["architecture"], "facts": broken}}))
        with pytest.raises(RunError) as error:
            load(tmp_path / "run")
        assert "\n" not in str(error.value)
    assert Path(folder).exists()
