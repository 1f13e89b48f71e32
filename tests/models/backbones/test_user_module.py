"""A network of the user's own code: it runs where the user said so, and nowhere else."""

import sys

import pytest
import torch

from paretoda.errors import BackboneError
from paretoda.models.backbones import make_backbone
from paretoda.models.backbones import user_module as own_module
from paretoda.models.classifier import describe, from_description, make_model

CODE = """
from pathlib import Path
import torch
from torch import nn
Path("sprung").touch()

def network(channels):
    return nn.Sequential(nn.Conv2d(channels, 5, 3), nn.Flatten())

def wrong(channels):
    return 3

def crooked(channels):
    return nn.Conv2d(channels, 5, 3)

number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a new module in the present folder."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_module, "_consented", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


def test_code_runs_only_where_the_user_said_so(module, tmp_path, monkeypatch):
    name = f"module:{module}.network"
    with pytest.raises(BackboneError, match=f"paretoda --trust-module {module}.network"):
        make_backbone(name, (3, 8, 8))
    monkeypatch.setenv(own_module.TRUSTED, f"other.thing, {module}.networks")
    with pytest.raises(BackboneError, match="not run unasked"):
        make_backbone(name, (3, 8, 8))
    assert not (tmp_path / "sprung").exists()
    monkeypatch.setenv(own_module.TRUSTED, f"other.thing, {module}.network")
    assert make_backbone(name, (3, 8, 8))(torch.zeros(2, 3, 8, 8)).shape == (2, 180)
    assert (tmp_path / "sprung").exists()


def test_the_width_is_measured_for_the_images_at_hand(module):
    own_module.consent(f"module:{module}.network")
    model = make_model(f"module:{module}.network", (1, 9, 9), 3)
    assert model.encoder.bottleneck[0].in_features == 5 * 7 * 7
    again = from_description(describe(model))
    again.load_state_dict(model.state_dict())
    x = torch.randn(2, 1, 9, 9)
    assert torch.equal(again.eval().encoder(x), model.eval().encoder(x))


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("wrong", "must return a torch.nn.Module, it gave a int"),
        ("crooked", r"must give features \(n, width\) for n images; for one image it gave \(1, 5, 6, 6\)"),
        ("absent", "cannot be imported"),
        ("number", "is no function"),
    ],
)
def test_a_factory_that_does_not_fit_gives_one_sentence(factory, message, module):
    own_module.consent(f"module:{module}.{factory}")
    with pytest.raises(BackboneError, match=message):
        make_backbone(f"module:{module}.{factory}", (3, 8, 8))


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("path", ["one", "a b.c", "no_such_module_here.f"])
def test_a_path_that_leads_nowhere_gives_one_sentence(path):
    own_module.consent(f"module:{path}")
    with pytest.raises(BackboneError, match="module:"):
        make_backbone(f"module:{path}", (3, 8, 8))
