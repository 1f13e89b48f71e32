"""Pseudo-labels of mirrored and scaled images: whose mean they are, at what resolution, by what thresholds."""

import pytest
import torch
from objectives.segmentation.scenes import Scenes
from objectives.segmentation.test_cbst import moved, started
from torch import nn
from torch.nn import functional

from paretoda.objectives.segmentation import Cbst
from paretoda.objectives.segmentation.pseudo_labels import balanced_labels, class_thresholds, predict_maps
from paretoda.types import IGNORE, Model

VIEWS = [(True, 1.0), (False, 0.9), (True, 0.9), (True, 1.5), (False, 0.5)]


def resized(maps, size):
    return functional.interpolate(maps, size=size, mode="bilinear", align_corners=True)


@torch.no_grad()
def mean_p(scenes, mirror, scale):
    """By the definition: p of the scaled images and of their mirror images, at the resolution of the plain maps."""
    seen = resized(scenes.shifted, (round(32 * scale), round(40 * scale)))
    p = scenes.model(seen).softmax(1)
    if mirror:
        p = (p + scenes.model(seen.flip(3)).softmax(1).flip(3)) / 2
    return resized(p, (8, 10))


def all_maps(scenes, **options):
    return torch.cat(list(predict_maps(scenes.snapshot(), **options)))


@pytest.mark.parametrize(("mirror", "scale"), VIEWS)
def test_the_maps_are_the_mean_prediction_at_the_resolution_of_the_training(mirror, scale):
    scenes = Scenes()
    found = all_maps(scenes, mirror=mirror, scale=scale)
    torch.testing.assert_close(found.exp(), mean_p(scenes, mirror, scale))
    torch.testing.assert_close(found.exp().sum(1), torch.ones(2, 8, 10, dtype=torch.float64))
    assert not torch.allclose(found, all_maps(scenes))


@pytest.mark.parametrize(("mirror", "scale"), VIEWS)
@pytest.mark.parametrize("priors", [False, True])
def test_labels_and_thresholds_come_from_the_same_maps(mirror, scale, priors):
    scenes = Scenes()
    given = torch.rand(4, 8, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    log_p = mean_p(scenes, mirror, scale).log() + (given.log() if priors else 0)
    thresholds = class_thresholds(log_p[:, :, ::2, ::2].movedim(1, 3).flatten(0, 2), 0.3)
    objective = started(scenes, portion=0.3, rounds=1, mirror=mirror, scale=scale, priors=given if priors else None)
    assert objective.labels.maps.equal(balanced_labels(log_p, thresholds))
    source, target = scenes.batch()
    expected = functional.cross_entropy(target.logits, objective.labels.maps.long(), ignore_index=IGNORE)
    assert objective(source, target).item() == pytest.approx(expected.item()), "what is taught is the image as it is"


def test_mirror_images_have_the_mirrored_maps():
    scenes, turned = Scenes(), Scenes()
    turned.shifted = scenes.shifted.flip(3)
    for scale in (1.0, 0.9):
        one, other = (all_maps(each, mirror=True, scale=scale) for each in (scenes, turned))
        torch.testing.assert_close(one.flip(3), other)
    assert not torch.allclose(all_maps(scenes).flip(3), all_maps(turned)), "the network alone sees a difference"


def test_images_of_one_colour_are_the_same_from_everywhere():
    scenes = Scenes()
    scenes.shifted = torch.full_like(scenes.shifted, 0.3)
    for mirror, scale in VIEWS:
        torch.testing.assert_close(all_maps(scenes, mirror=mirror, scale=scale), all_maps(scenes))


def test_the_default_is_bit_for_bit_what_it_was():
    scenes = Scenes()
    plain = torch.cat([scenes.model(image).log_softmax(1) for image in scenes.shifted.split(1)])
    assert all_maps(scenes).equal(plain)
    assert all_maps(scenes, scale=1).equal(plain)
    assert started(scenes, mirror=False, scale=1.0).labels.maps.equal(started(scenes).labels.maps)


@pytest.mark.parametrize(("mirror", "scale"), VIEWS)
def test_certain_predictions_are_no_trouble(mirror, scale):
    """In single precision all other probabilities are 0."""
    scenes = Scenes(dtype=torch.float32)
    with torch.no_grad():
        scenes.model.head.weight.mul_(1e4)
    assert all_maps(scenes, mirror=mirror, scale=scale).isfinite().all()
    for options in ({}, {"lrent": 0.25}, {"rule": "fda"}, {"rule": "global"}):
        objective = Cbst(6, 4, warm_up=0.3, mirror=mirror, scale=scale, **options)
        objective.advance(0.5)
        objective.refresh(scenes.snapshot())
        assert 0 < objective.share <= 1
        assert objective(*scenes.batch()).isfinite()


def test_the_network_is_asked_in_evaluation_mode_and_left_as_it_was():
    torch.manual_seed(0)
    scenes = Scenes(dtype=torch.float32)
    encoder = nn.Sequential(nn.Conv2d(3, 6, 4, stride=4), nn.BatchNorm2d(6), nn.Dropout(0.5))
    scenes.model = Model(encoder, nn.Conv2d(6, 4, 1)).train()
    snapshot = scenes.snapshot()
    before = {key: value.clone() for key, value in scenes.model.state_dict().items()}
    first, second = (torch.cat(list(predict_maps(snapshot, mirror=True, scale=0.9))) for _ in range(2))
    assert first.equal(second), "no dropout"
    assert encoder[2].training
    assert all(value.equal(before[key]) for key, value in scenes.model.state_dict().items())


def test_a_resumed_run_keeps_the_labels_of_its_round():
    scenes = Scenes()
    objective = started(scenes, progress=0.4, mirror=True, scale=0.9)
    twin = Cbst(6, 4, warm_up=0.3, mirror=True, scale=0.9).double()
    twin.load_state_dict(objective.state_dict())
    moved(scenes)
    twin.advance(0.4)
    twin.refresh(scenes.snapshot())
    assert twin.labels.maps.equal(objective.labels.maps)
    assert list(twin.state_dict()) == list(started(scenes).state_dict()), "old states fit"


@pytest.mark.parametrize("scale", [0.0, -1.0, 0.2, 4.1, float("nan")])
def test_an_impossible_scale_is_refused(scale):
    with pytest.raises(ValueError, match=r"scale must lie in 0\.25\.\.4"):
        Cbst(6, 4, scale=scale)
