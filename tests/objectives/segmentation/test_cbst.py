"""Self-training in rounds: when labels are made, of what, and what is taught."""

from dataclasses import replace

import pytest
import torch
from objectives.samples import silent
from objectives.segmentation.scenes import Scenes
from torch import nn
from torch.nn import functional

from paretoda.objectives.segmentation import Cbst
from paretoda.objectives.segmentation.pseudo_labels import LabelMaps, balanced_labels, class_thresholds
from paretoda.types import IGNORE, Model, Target


def started(scenes, progress=0.5, warm_up=0.3, **options):
    objective = Cbst(6, 4, warm_up=warm_up, **options).double()
    objective.advance(progress)
    objective.refresh(scenes.snapshot())
    return objective


def moved(scenes):
    """Another model, in place."""
    with torch.no_grad():
        for parameter in scenes.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(7)))


def test_nothing_is_taught_before_the_first_round():
    scenes = Scenes()
    objective = started(scenes, progress=0.29)
    loss = objective(*scenes.batch())
    assert loss.item() == 0
    assert silent(loss, scenes.body())
    assert loss.requires_grad


def test_rounds_are_equal_parts_of_what_is_left_and_portions_grow():
    objective = Cbst(6, 4, rounds=4, warm_up=0.3)
    assert [objective.round_at(p) for p in (0, 0.299, 0.3, 0.47, 0.475, 0.65, 0.825, 1)] == [-1, -1, 0, 0, 1, 2, 3, 3]
    scenes = Scenes()
    shares = []
    for rounds in (1, 4, 10, 20):
        objective = started(scenes, progress=1.0, rounds=rounds)
        labels = balanced_labels(
            scenes.target().logits.log_softmax(1),
            class_thresholds(scenes.snapshot().target.logits.log_softmax(1), min(0.2 + 0.05 * (rounds - 1), 0.5)),
        )
        assert objective.labels.maps.equal(labels)
        assert objective.share == pytest.approx((labels != IGNORE).double().mean().item())
        shares.append(objective.share)
    assert shares[0] < shares[1] < shares[2] == shares[3]


def test_labels_are_made_once_a_round_by_the_model_of_that_time():
    scenes = Scenes()
    objective = started(scenes, progress=0.3)
    first = objective.labels.maps.clone()
    moved(scenes)
    objective.advance(0.47)
    objective.refresh(scenes.snapshot())
    assert objective.labels.maps.equal(first)
    objective.advance(0.48)
    assert objective.labels.maps.equal(first)
    objective.refresh(scenes.snapshot())
    assert not objective.labels.maps.equal(first)


@pytest.mark.parametrize("mrkld", [0.0, 0.1])
def test_the_loss_is_the_mean_over_taught_pixels(mrkld):
    scenes = Scenes()
    objective = started(scenes, mrkld=mrkld)
    source, target = scenes.batch()
    labels = objective.labels.maps.long()
    plain = functional.cross_entropy(target.logits, labels, ignore_index=IGNORE)
    pull = target.logits.log_softmax(1).movedim(1, 3)[labels != IGNORE].mean()
    loss = objective(source, target)
    assert loss.item() == pytest.approx((plain - mrkld * pull).item())
    gradient = torch.autograd.grad(loss, target.logits)[0]
    assert not gradient.movedim(1, 3)[labels == IGNORE].any(), "ignored pixels contribute nothing"
    assert gradient.movedim(1, 3)[labels != IGNORE].any(1).all()


def test_mrkld_is_the_divergence_from_uniform():
    """-Σ_k log p_k / K is KL(uniform, p) + log K: least where the prediction is uniform."""
    scenes = Scenes()
    plain, pulled = started(scenes), started(scenes, mrkld=0.1)
    source, target = scenes.batch()
    p = target.logits.softmax(1).movedim(1, 3)[plain.labels.maps != IGNORE]
    uniform = torch.full_like(p, 0.25)
    divergence = (uniform * (uniform / p).log()).sum(1).mean() + torch.tensor(4.0).log()
    assert (pulled(source, target) - plain(source, target)).item() == pytest.approx(0.1 * divergence.item())


def test_soft_labels_are_taught_as_they_are():
    scenes = Scenes()
    objective = started(scenes, lrent=0.25)
    source, target = scenes.batch()
    soft = objective.labels.maps.double()
    assert soft.shape == (2, 4, 8, 10)
    there = soft.sum(1) > 0
    assert 0 < objective.share == pytest.approx(there.double().mean().item())
    expected = -(soft * target.logits.log_softmax(1)).sum(1)[there].mean()
    assert objective(source, target).item() == pytest.approx(expected.item())


def test_each_image_is_taught_its_own_labels():
    scenes = Scenes(images=3)
    objective = started(scenes)
    source, target = scenes.batch()
    order = torch.tensor([2, 0])
    part = Target(target.features[order], target.logits[order], order)
    expected = functional.cross_entropy(part.logits, objective.labels.maps[order].long(), ignore_index=IGNORE)
    assert objective(source, part).item() == pytest.approx(expected.item())


def test_an_image_without_a_taught_pixel_is_no_trouble():
    scenes = Scenes()
    objective = started(scenes)
    objective.labels.replace(torch.full((2, 8, 10), IGNORE, dtype=torch.uint8))
    assert objective(*scenes.batch()).item() == 0


def test_cropped_images_are_refused():
    scenes = Scenes()
    objective = started(scenes)
    source, target = scenes.batch()
    part = Target(target.features, target.logits[..., :5], target.index)
    with pytest.raises(ValueError, match="must not be cropped"):
        objective(source, part)


def test_labels_come_from_evaluation_mode_and_leave_the_model_as_it_was():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Conv2d(3, 6, 4, stride=4), nn.BatchNorm2d(6), nn.Dropout(0.5))
    scenes = Scenes(dtype=torch.float32)
    scenes.model = Model(encoder, nn.Conv2d(6, 4, 1))
    scenes.model.train()
    snapshot = scenes.snapshot()
    encoder[2].eval()
    before = {key: value.clone() for key, value in scenes.model.state_dict().items()}
    first, second = Cbst(6, 4, warm_up=0.3), Cbst(6, 4, warm_up=0.3)
    for objective in (first, second):
        objective.advance(0.5)
        objective.refresh(snapshot)
    assert first.labels.maps.equal(second.labels.maps), "no dropout"
    assert [layer.training for layer in (encoder[1], encoder[2])] == [True, False]
    assert all(value.equal(before[key]) for key, value in scenes.model.state_dict().items())
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("portion", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("rule", ["cbst", "global", "fda"])
def test_priors_of_one_change_nothing(rule, portion):
    """Thresholds with priors are of every second row and column: here those without are of the same pixels."""
    scenes = Scenes()
    snapshot = scenes.snapshot()
    logits = scenes.target().logits.detach()[:, :, ::2, ::2].movedim(1, 3).flatten(0, 2)
    snapshot = replace(snapshot, target=replace(snapshot.target, logits=logits))
    found = []
    for priors in (None, torch.ones(4, 8, 10, dtype=torch.float64)):
        objective = Cbst(6, 4, warm_up=0.3, rounds=1, portion=portion, rule=rule, priors=priors).double()
        objective.advance(0.5)
        objective.refresh(snapshot)
        found.append(objective.labels.maps)
    assert found[0].equal(found[1])
    assert (found[0] != IGNORE).any()


def test_priors_forbid_places():
    above = torch.ones(4, 8, 10, dtype=torch.float64)
    above[1, :4] = 0.0
    labels = started(Scenes(), portion=1.0, rounds=1, priors=above).labels.maps
    assert not (labels[:, :4] == 1).any()
    assert (labels[:, 4:] == 1).any()


def test_a_resumed_run_knows_its_round_and_labels():
    scenes = Scenes()
    objective = started(scenes, progress=0.4)
    twin = Cbst(6, 4, warm_up=0.3).double()
    assert twin.share != twin.share  # not a number: nothing is labelled yet
    twin.load_state_dict(objective.state_dict())
    assert twin.share == objective.share
    first = objective.labels.maps.clone()
    moved(scenes)
    twin.advance(0.4)
    assert not twin.refresh_due
    twin.refresh(scenes.snapshot())
    assert twin.labels.maps.equal(first), "the round is the same"
    twin.advance(0.5)
    assert twin.refresh_due
    empty = LabelMaps()
    empty.load_state_dict(LabelMaps().state_dict())
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "other"}, "rule must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"warm_up": 1.0}, "warm_up lie"),
        ({"lrent": 0.25, "rule": "fda"}, "lrent must be"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Cbst(6, 4, **options)
