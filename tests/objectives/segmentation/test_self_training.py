"""Self-training of pixels: what is pasted, what is hidden, and how much the teacher's labels count."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from paretoda.objectives.segmentation import Dacs, Mic
from paretoda.objectives.segmentation.self_training import jitter_colours, mask_blocks, mix_classes
from paretoda.types import IGNORE, Batch, Source, TaughtTarget

SHAPE = {"features": 4, "classes": 3}


def make_batch(count=2, size=(8, 12), classes=3, seed=0):
    torch.manual_seed(seed)
    labels = torch.randint(classes, (count, *size))
    labels[:, 0] = IGNORE
    index = torch.arange(count)
    return Batch(torch.randn(count, 3, *size), labels, torch.randn(count, 3, *size), None, index, index, None)


def probabilities_of(labels, confidence, classes=3):
    rest = (1 - confidence) / (classes - 1)
    return functional.one_hot(labels, classes).permute(0, 3, 1, 2) * (confidence - rest) + rest


@settings(max_examples=30)
@given(st.integers(1, 7), st.integers(0, 1000))
def test_half_of_the_classes_of_each_image_are_pasted_and_ignored_pixels_never(classes, seed):
    labels = make_batch(classes=classes, seed=seed).labels
    for own, pasted in zip(labels, mix_classes(labels), strict=True):
        present, chosen = set(own.unique().tolist()) - {IGNORE}, set(own[pasted].unique().tolist())
        assert len(chosen) == (len(present) + 1) // 2
        assert chosen <= present
        assert set(own[~pasted].unique().tolist()).isdisjoint(chosen)


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_pasted_pixels_are_the_sources_and_the_others_count_where_the_teacher_is_confident(confidence):
    batch, taught = make_batch(), torch.randint(3, (2, 8, 12))
    inputs, labels, weights = Dacs(**SHAPE, jitter=0.0).lesson(batch, probabilities_of(taught, confidence))
    pasted = (inputs == batch.source).all(1)
    assert torch.equal((inputs == batch.target).all(1), ~pasted)
    assert torch.equal(labels, batch.labels.where(pasted, taught))
    assert IGNORE not in labels
    assert set(weights[pasted].tolist()) == {1.0}
    assert set(weights[~pasted].tolist()) == {float(confidence > 0.968)}


def test_the_teachers_weight_is_the_share_of_confident_pixels():
    batch, taught = make_batch(), torch.randint(3, (2, 8, 12))
    probabilities = probabilities_of(taught, 0.99)
    probabilities[:, :, :2] = 1 / 3
    *_, weights = Mic(**SHAPE).lesson(batch, probabilities)
    assert weights.unique().tolist() == [0.75]


@settings(max_examples=20)
@given(st.integers(1, 9), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 100))
def test_whole_blocks_are_hidden(block, share, seed):
    torch.manual_seed(seed)
    hidden = mask_blocks((3, 16, 20), block, share)
    assert hidden.shape == (3, 16, 20)
    if share in (0.0, 1.0):
        assert hidden.float().mean() == share
    for top in range(0, 16, block):
        for left in range(0, 20, block):
            inside = hidden[:, top : top + block, left : left + block].flatten(1).float().mean(1)
            assert set(inside.tolist()) <= {0.0, 1.0}


def test_hidden_pixels_have_the_mean_colour_and_the_labels_of_the_whole_image():
    batch, taught = make_batch(size=(32, 32)), torch.randint(3, (2, 32, 32))
    inputs, labels, _ = Mic(**SHAPE, jitter=0.0, block=8, share=0.5).lesson(batch, probabilities_of(taught, 0.9))
    hidden = (inputs == 0).all(1)
    assert 0.1 < hidden.float().mean() < 0.9
    assert torch.equal(inputs, batch.target.masked_fill(hidden[:, None], 0.0))
    assert torch.equal(labels, taught)


@pytest.mark.parametrize("make", [Dacs, Mic])
def test_the_loss_is_the_mean_of_weight_times_cross_entropy(make):
    logits = torch.randn(2, 3, 4, 6, requires_grad=True)
    labels, weights = torch.randint(3, (2, 4, 6)), torch.rand(2, 4, 6)
    source = Source(torch.zeros(2, 4, 4, 6), logits, torch.arange(2), labels=labels)
    taught = TaughtTarget(torch.zeros(2, 4, 4, 6), logits, torch.arange(2), labels=labels, weights=weights)
    wanted = -(weights * logits.log_softmax(1).gather(1, labels[:, None])[:, 0]).mean()
    assert torch.allclose(make(**SHAPE, strength=2.0)(source, taught), 2 * wanted)
    unsure = TaughtTarget(taught.features, logits, taught.index, labels=labels, weights=torch.zeros(2, 4, 6))
    assert make(**SHAPE)(source, unsure) == 0
    with pytest.raises(TypeError, match="call it with a TaughtTarget"):
        make(**SHAPE)(source, source)


def test_colours_change_within_bounds():
    torch.manual_seed(0)
    images = torch.randn(64, 3, 4, 4)
    changed = jitter_colours(images, 0.25)
    assert (changed - images).abs().max() <= 0.25 * (images.abs().max() + 1)
    assert torch.equal(jitter_colours(images, 0.0), images)


def test_wrong_options_and_sizes_are_refused():
    with pytest.raises(ValueError, match="confidence is a probability"):
        Dacs(**SHAPE, confidence=1.5)
    with pytest.raises(ValueError, match="jitter is 0 or more"):
        Dacs(**SHAPE, jitter=-1.0)
    with pytest.raises(ValueError, match="block is a number of pixels"):
        Mic(**SHAPE, block=0)
    with pytest.raises(ValueError, match="share is a share"):
        Mic(**SHAPE, share=2.0)
    batch, index = make_batch(), torch.arange(2)
    other = Batch(batch.source, batch.labels, torch.randn(2, 3, 6, 6), None, index, index, None)
    with pytest.raises(ValueError, match="leave out --source-size"):
        Dacs(**SHAPE).lesson(other, torch.ones(2, 3, 6, 6))
