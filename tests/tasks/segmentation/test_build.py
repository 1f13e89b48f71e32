"""What the parts of a segmentation run are made of, and what its objectives are told of the data."""

from pathlib import Path

import pytest
import torch
from tasks.segmentation.conftest import QUICK, same

from paretoda import segment
from paretoda.data.segmentation import make_scene_pair
from paretoda.data.transforms import IMAGENET
from paretoda.models.backbones.efficientnet import efficientnet_lite0
from paretoda.run.callbacks import Callbacks
from paretoda.tasks.segmentation.build import make_model, make_objectives, make_optimiser
from paretoda.tasks.segmentation.inputs import make_pair_settings
from paretoda.tasks.segmentation.predictor import load_predictor
from paretoda.tasks.settings import make_settings


@pytest.mark.parametrize(
    ("given", "power"),
    [
        ({"options": ["target.prior=source"]}, 0.5),
        ({"options": ["target.prior=estimated"]}, 0.5),
        ({}, 0.5),
        ({"class_weights": "none"}, 1.0),
        ({"options": ["target.prior=uniform"]}, None),
    ],
)
def test_the_target_loss_asks_for_the_frequencies_that_the_source_loss_teaches(streets, given, power):
    source, target, _ = streets
    settings = make_settings({"task": "segmentation", "method": "advent+tcm", "batch_size": 2, **given})
    pair = make_scene_pair(source, target, make_pair_settings(settings))
    objective = make_objectives(settings, pair, make_model(settings, pair))["target"]
    shares = pair.source_frequencies()
    if power is None:
        assert objective.inner.prior.log is None
        return
    estimated = given.get("options") != ["target.prior=source"]
    assert (objective.inner.prior.shift is not None) == estimated  # it begins as the source's, and moves
    common = shares > 0.02  # rarer ones have a least share
    found = objective.inner.prior.log.exp().double()[common]
    wanted = shares[common] ** power
    torch.testing.assert_close(found / found.sum(), wanted / wanted.sum(), rtol=1e-4, atol=0)


def weights(tmp_path):
    """A file like the published one."""
    path = tmp_path / "lite0.pth"
    torch.save(efficientnet_lite0(classes=1000).state_dict(), path)
    return str(path)


@pytest.mark.parametrize(
    ("backbone", "given", "rates"),
    [
        ("dilated", {}, [3e-3, 3e-3, 1e-3]),
        ("efficientnet-lite0", {}, [1e-3, 1e-3, 1e-3 / 3]),
        ("efficientnet-lite0", {"lr": 0.03}, [0.03, 0.03, 0.01]),
        ("efficientnet-lite0", {"optimiser": "sgd"}, [2.5e-4, 2.5e-4, 1e-4]),
        ("deeplab-resnet50", {}, [2.5e-4, 2.5e-3, 1e-4]),
        ("deeplab-resnet50", {"optimiser": "adam"}, [3e-3, 3e-2, 1e-3]),
    ],
)
def test_rates_of_network_head_and_adversaries(streets, backbone, given, rates):
    source, target, _ = streets
    settings = make_settings({"task": "segmentation", "backbone": backbone, "batch_size": 2, **given})
    pair = make_scene_pair(source, target, make_pair_settings(settings))
    model = make_model(settings, pair)
    optimiser = make_optimiser(settings, model, make_objectives(settings, pair, model))
    assert [group["lr"] for group in optimiser.param_groups] == pytest.approx(rates)


def test_pixels_are_the_numbers_that_the_weights_of_the_backbone_know(streets):
    source, target, _ = streets
    image = torch.from_numpy(target[:1]).permute(0, 3, 1, 2).float()
    for given, wanted in [
        ({"backbone": "efficientnet-lite0"}, (image - 127) / 128),
        ({"backbone": "efficientnet-lite0", "convention": "torchvision"}, None),
        ({}, None),
    ]:
        settings = make_settings({"task": "segmentation", "batch_size": 2, **given})
        found = make_scene_pair(source, target, make_pair_settings(settings)).target.transform.normalise(image)
        mean, std = (torch.tensor(row).view(3, 1, 1) for row in IMAGENET)
        torch.testing.assert_close(found, (image / 255 - mean) / std if wanted is None else wanted)


def test_a_run_says_its_weights_goes_on_and_predicts_without_their_file(streets, tmp_path):
    source, target, _ = streets
    said = []
    file = weights(tmp_path)
    wanted = {"backbone": "efficientnet-lite0", "backbone_weights": file, **QUICK}
    whole = segment(source, target, tmp_path / "whole", **wanted, callbacks=Callbacks(say=said.append))
    assert f"efficientnet-lite0 begins with the weights {file}." in said

    def stop(taken, _report):
        if taken == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        segment(source, target, tmp_path / "run", **wanted, checkpoint_every=2, after=[stop])
    again = segment(source, target, tmp_path / "run", resume=True)
    assert same(whole.model.model, again.model.model)
    stem = "encoder.body.trunk._conv_stem.weight"
    assert torch.equal(whole.model.model.state_dict()[stem], torch.load(file)["_conv_stem.weight"])
    Path(file).unlink()
    alone = load_predictor(tmp_path / "run" / "model.safetensors", tmp_path / "run" / "model.json")
    assert torch.equal(alone.probabilities(target[0]), whole.model.probabilities(target[0]))


def test_random_weights_are_said(streets):
    source, target, _ = streets
    said = []
    wanted = {"backbone": "efficientnet-lite0", "backbone_weights": "none", **QUICK, "steps": 1}
    segment(source, target, **wanted, callbacks=Callbacks(say=said.append))
    assert any(line.startswith("efficientnet-lite0 begins with random weights; --backbone-weights") for line in said)
