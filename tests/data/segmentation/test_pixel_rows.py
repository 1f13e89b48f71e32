"""Pixels of whole sets of images as rows of a snapshot."""

import pytest
import torch
from torch import nn

from paretoda.data.segmentation.pixel_rows import sample_pixels
from paretoda.types import IGNORE, Source, Target


def encode(inputs):
    return inputs, 2 * inputs


def scenes(images=5):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(images, 3, 32, 40, generator=generator)
    labels = torch.randint(0, 4, (images, 32, 40), generator=generator)
    return inputs, labels.masked_fill(torch.rand(labels.shape, generator=generator) < 0.5, IGNORE)


def test_rows_are_pixels_of_the_maps():
    torch.manual_seed(0)
    encoder, head = nn.Conv2d(3, 5, 4, stride=4), nn.Conv2d(5, 4, 1)
    inputs, labels = scenes()

    def forward(images):
        maps = encoder(images)
        return maps, head(maps)

    with torch.no_grad():
        source = sample_pixels(forward, inputs.split(2), labels.split(2), per_image=7)
        target = sample_pixels(forward, inputs.split(2), per_image=7)
        features = encoder(inputs)
    assert isinstance(source, Source)
    assert type(target) is Target
    for rows in (source, target):
        assert rows.index.tolist() == list(range(35))
        for image in range(5):
            own = slice(7 * image, 7 * image + 7)
            distances = (rows.features[own].unsqueeze(1) - features[image].flatten(1).T).norm(dim=2)
            assert distances.min(1).values.max().item() < 1e-5, "every row is a pixel of its image"
            assert len(distances.argmin(1).unique()) == 7
        logits = rows.features @ head.weight[:, :, 0, 0].T + head.bias
        torch.testing.assert_close(rows.logits, logits)
        assert not rows.features.requires_grad


def test_labels_are_the_nearest_and_ignored_pixels_are_dropped():
    """Inputs that carry their label: behind the encoder each row still knows its own."""
    corners = torch.randint(0, 4, (2, 8, 10), generator=torch.Generator().manual_seed(1))
    corners[0, :4] = IGNORE
    labels = torch.full((2, 29, 37), IGNORE)
    labels[:, ::4, ::4] = corners
    source = sample_pixels(encode, [corners.unsqueeze(1).float()], [labels], per_image=60)
    assert source.features.squeeze(1).long().equal(source.labels)
    assert len(source.index) == 40 + 60
    assert int(source.labels.max()) < 4


@pytest.mark.parametrize("size", [1, 3, 5])
def test_the_choice_depends_on_the_seed_and_not_on_the_model_or_the_batches(size):
    inputs, labels = scenes()
    whole = sample_pixels(encode, [inputs], [labels], per_image=9, seed=3)
    parts = sample_pixels(encode, inputs.split(size), labels.split(size), per_image=9, seed=3)
    torch.testing.assert_close(whole.features, parts.features)
    assert whole.labels.equal(parts.labels)
    assert whole.index.equal(parts.index)
    other = sample_pixels(encode, [inputs], [labels], per_image=9, seed=4)
    assert not whole.features.equal(other.features)


def test_a_set_without_a_pixel_is_refused():
    inputs, labels = scenes()
    with pytest.raises(ValueError, match="there is no pixel to look at"):
        sample_pixels(encode, [inputs], [torch.full_like(labels, IGNORE)])
    with pytest.raises(ValueError, match="there is no pixel to look at"):
        sample_pixels(encode, [])
