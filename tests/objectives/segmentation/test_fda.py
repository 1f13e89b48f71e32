"""FDA's loss with labels of teachers: their cross-entropy beside the entropy, nothing where there are none."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.segmentation.scenes import Scenes
from torch.nn import functional

from paretoda.objectives.segmentation import FdaEntropy
from paretoda.objectives.segmentation.pseudo_labels import (
    confident_labels,
    fda_thresholds,
    labels_above,
    upper_thresholds,
)
from paretoda.types import IGNORE, Target

SEEDS = st.integers(0, 300)


def labelled(maps, classes=4):
    objective = FdaEntropy(6, classes)
    objective.labels.replace(maps)
    return objective


def drawn(seed, images=2):
    """Label maps of 8x10 pixels, most of them without a label."""
    chance = torch.Generator().manual_seed(seed)
    maps = torch.randint(0, 4, (images, 8, 10), generator=chance, dtype=torch.uint8)
    return maps.masked_fill(torch.rand(maps.shape, generator=chance) < 0.6, IGNORE)


def test_without_a_labelled_pixel_it_is_the_plain_entropy_and_its_gradient():
    target = Scenes().target()
    nothing = labelled(torch.full((2, 8, 10), IGNORE, dtype=torch.uint8))
    losses = [objective(None, target) for objective in (FdaEntropy(6, 4), nothing)]
    assert losses[0].equal(losses[1])
    one, other = (torch.autograd.grad(loss, target.logits, retain_graph=True)[0] for loss in losses)
    assert one.equal(other)


@given(SEEDS)
def test_the_labels_add_their_mean_cross_entropy_at_full_strength(seed):
    target, maps = Scenes(seed=seed % 5).target(), drawn(seed)
    oracle = functional.cross_entropy(target.logits, maps.long(), ignore_index=IGNORE)
    added = labelled(maps)(None, target) - FdaEntropy(6, 4)(None, target)
    torch.testing.assert_close(added, oracle)


def test_every_image_has_its_own_labels_wherever_it_stands_in_a_batch():
    target, maps = Scenes(images=3).target(), drawn(1, 3)
    turned = torch.tensor([2, 0, 1])
    other = Target(target.features[turned], target.logits[turned], turned)
    objective = labelled(maps)
    torch.testing.assert_close(objective(None, target), objective(None, other))
    with pytest.raises(ValueError, match="must not be cropped"):
        objective(None, Target(target.features, target.logits[..., :5], target.index))


def test_a_state_brings_its_labels_along():
    target = Scenes().target()
    first, second = labelled(drawn(2)), FdaEntropy(6, 4)
    second.load_state_dict(first.state_dict())
    assert first(None, target).equal(second(None, target))


@given(SEEDS, st.integers(2, 8))
def test_the_predicted_class_and_its_confidence_are_all_that_labels_need(seed, classes):
    chance = torch.Generator().manual_seed(seed)
    log_p = (2 * torch.randn(100, classes, dtype=torch.float64, generator=chance)).log_softmax(1)
    confidence, predicted = log_p.max(1)
    thresholds = upper_thresholds(confidence, predicted, classes)
    assert thresholds.equal(fda_thresholds(log_p))
    assert labels_above(confidence, predicted, thresholds).equal(confident_labels(log_p, thresholds))
