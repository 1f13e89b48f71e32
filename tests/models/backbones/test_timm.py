"""Networks of timm, where it is installed (it needs torchvision, and so another build of torch than we develop with).

In an environment of their own: pip install timm torch torchvision, our other dependencies and pytest, then
`PYTHONPATH=src python -m pytest tests/models/backbones/test_timm.py`.
"""

import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import paretoda
from paretoda.errors import BackboneError, WeightsError
from paretoda.models import weights as hub
from paretoda.models.backbones import find_backbone, make_backbone
from paretoda.models.backbones.resnet import resnet18, resnet34, resnet50, resnet101, resnet152
from paretoda.run.backbone_choice import resolve_backbone
from paretoda.tasks.settings import make_settings


def test_without_timm_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(BackboneError, match=r'timm:convnext_tiny needs timm: pip install "paretoda\[timm\]"'):
        find_backbone("timm:convnext_tiny")


@pytest.fixture
def timm():
    return pytest.importorskip("timm", reason="timm is not installed: see the first lines of this file")


@pytest.fixture
def saved(timm, tmp_path):
    """A file of weights with a classifier, as timm publishes them, and the network that it was made from."""
    network = timm.create_model("test_vit", num_classes=1000).eval()
    save_file(network.state_dict(), tmp_path / "model.safetensors")
    return network


def test_features_are_those_of_timm(saved, tmp_path):
    x = torch.randn(2, 3, 160, 160)
    network = make_backbone("timm:test_vit", (3, 160, 160), tmp_path).eval()
    with torch.no_grad():
        wanted = saved.forward_head(saved.forward_features(x), pre_logits=True)
        assert torch.allclose(network(x), wanted, atol=1e-6)
    assert network.facts["width"] == wanted.shape[1]
    again = make_backbone("timm:test_vit", (3, 160, 160), facts=network.facts).eval()
    again.load_state_dict(network.state_dict())
    with torch.no_grad():
        assert torch.equal(again(x), network(x))


def test_size_and_normalisation_are_timms(timm):
    known, found = timm.get_pretrained_cfg("test_vit"), find_backbone("timm:test_vit")
    assert (found.size, found.mean, found.std) == (known.input_size[-1], known.mean, known.std)


def test_what_cannot_be_is_refused_in_one_sentence(saved, tmp_path):
    with pytest.raises(BackboneError, match="there is no network of timm 'convnext_tinny'; did you mean"):
        find_backbone("timm:convnext_tinny")
    for name in ("hf-hub:evil/x", "local-dir:/tmp/x", "evil/x", ""):
        with pytest.raises(BackboneError):
            find_backbone(f"timm:{name}")
    with pytest.raises(BackboneError, match=r"test_vit\.nonsense"):
        find_backbone("timm:test_vit.nonsense")
    with pytest.raises(BackboneError, match="cannot read images of 100x100"):
        make_backbone("timm:test_vit", (3, 100, 100))
    with pytest.raises(WeightsError, match="another model"):
        make_backbone("timm:test_resnet", (3, 160, 160), tmp_path)
    assert saved is not None


@pytest.mark.usefixtures("saved")
def test_a_run_is_repeated_by_name_and_predicts_alone(tmp_path, monkeypatch):
    asked = []

    def downloaded(text):
        asked.append(text)
        return tmp_path / "snapshots" / "abc" / "model.safetensors"

    (tmp_path / "snapshots" / "abc").mkdir(parents=True)
    (tmp_path / "model.safetensors").rename(tmp_path / "snapshots" / "abc" / "model.safetensors")
    monkeypatch.setattr("paretoda.models.weights.find_weights", downloaded)
    monkeypatch.setattr("paretoda.models.weights.find_weights", downloaded)
    settings = resolve_backbone(make_settings({"backbone": "timm:test_vit", "frozen": True}))
    assert settings.backbone.startswith("timm:test_vit.")
    assert settings.backbone_weights == f"hub:timm/{settings.backbone[5:]}@abc/model.safetensors"
    assert hub.parse_hub_name(asked[0]).repository == f"timm/{settings.backbone[5:]}"
    y = np.arange(30) % 3
    x = np.random.default_rng(0).integers(0, 90, (30, 32, 32, 3))
    x[np.arange(30), :, :, y] += 120
    x = x.astype(np.uint8)
    quick = {"steps": 2, "batch_size": 8, "bottleneck": 8, "select": "last", "reference": False, "device": "cpu"}
    run = paretoda.adapt((x, y, ["r", "g", "b"]), x, tmp_path / "run", backbone="timm:test_vit", **quick)
    from paretoda.data import open_samples
    from paretoda.tasks.classification.predictor import load_predictor

    monkeypatch.setattr("paretoda.models.weights.find_weights", lambda _: pytest.fail("nothing is downloaded"))
    again = load_predictor(tmp_path / "run" / "model.safetensors", tmp_path / "run" / "model.json")
    assert np.allclose(again.probabilities(open_samples(x, labelled=False)), run.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize("ours", [resnet18, resnet34, resnet50, resnet101, resnet152])
def test_tv_in1k_has_the_names_of_our_resnets(ours, timm):
    with torch.device("meta"):
        theirs = timm.create_model(f"{ours.__name__}.tv_in1k").state_dict()
        mine = ours(classes=1000).state_dict()
    assert {key: value.shape for key, value in theirs.items()} == {key: value.shape for key, value in mine.items()}


def test_tv_in1k_computes_what_our_resnet_does(timm, tmp_path):
    theirs = timm.create_model("resnet18.tv_in1k", pretrained=False).eval()
    torch.save(theirs.state_dict(), tmp_path / "w.pth")
    mine = make_backbone("resnet18", (3, 64, 64), tmp_path / "w.pth").eval()
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.allclose(mine(x), theirs.forward_head(theirs.forward_features(x), pre_logits=True), atol=1e-5)
