"""Image and label always undergo the same change."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paretoda.data.segmentation.transforms import CONVENTIONS, SceneTransform
from paretoda.errors import DataError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stripes(count: int = 6, width: int = 20, height: int = 12, classes: int = 4) -> tuple[NDArray, NDArray]:
    """Images whose every pixel tells its class: the red value is 60 times the class."""
    rng = np.random.default_rng(1)
    maps = np.kron(rng.integers(0, classes, (count, height // 4, width // 4)), np.ones((1, 4, 4))).astype(np.uint8)
    images = np.stack([60 * maps, np.zeros_like(maps), 255 - 60 * maps], axis=3)
    return images, maps


@given(
    st.integers(0, 1000),
    st.booleans(),
    st.sampled_from([None, (0.5, 0.5), (1.0, 1.0), (2.0, 2.0)]),
    st.sampled_from([None, (8, 8), (40, 6), (7, 30)]),
)
def test_labels_stay_with_their_pixels(
    seed: int, flip: bool, scales: tuple[float, float] | None, crop: tuple[int, int] | None
) -> None:
    images, maps = stripes()
    transform = SceneTransform((20, 12), flip=flip, scales=scales, crop=crop)
    pixels, labels = transform.augment(images, maps, generator(seed))
    assert labels is not None
    width, height = transform.trained_size
    assert pixels.shape == (6, 3, height, width)
    assert labels.shape == (6, height, width)
    inside = labels != 255
    # A scaled image is smooth at the stripes' edges, so that nearly all pixels agree, and all without a scale.
    right = (pixels[:, 0] / 60).round()[inside] == labels[inside]
    assert right.float().mean() >= (1 if scales in (None, (1.0, 1.0)) else 0.6)
    outside = pixels.permute(0, 2, 3, 1)[~inside]
    mean = torch.tensor(transform.convention.mean) * 255
    assert (outside - mean).abs().max() <= 0.5 if len(outside) else True


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_padding_is_zero_for_the_network(convention: str) -> None:
    images, maps = stripes()
    transform = SceneTransform((20, 12), CONVENTIONS[convention], crop=(30, 20))
    pixels, labels = transform.train(images, maps, generator())
    assert labels is not None
    assert (labels != 255).sum() == maps.size
    numbers = pixels.permute(0, 2, 3, 1)
    rounding = 0.51 * transform.convention.scale / min(transform.convention.std)
    assert numbers[labels == 255].abs().max() < rounding
    assert numbers[labels != 255].abs().max() > (0.9 if convention == "efficientnet" else 1.5)  # its range is -1..1


def test_half_of_the_images_are_mirrored_with_their_labels() -> None:
    images, maps = stripes(count=64)
    pixels, labels = SceneTransform((20, 12), flip=True).augment(images, maps, generator())
    assert labels is not None
    plain = torch.from_numpy(maps).long()
    mirrored = torch.tensor([torch.equal(one, two.flip(-1)) for one, two in zip(labels, plain, strict=True)])
    assert 20 < mirrored.sum() < 44
    assert all(torch.equal(one, two) for one, two in zip(labels[~mirrored], plain[~mirrored], strict=True))
    assert torch.equal((pixels[:, 0] / 60).long(), labels)


def test_every_place_of_a_crop_and_both_ends_of_a_scale_are_reached() -> None:
    image = np.arange(6, dtype=np.uint8)[None, None, :, None].repeat(3, axis=3)
    first = {
        int(SceneTransform((6, 1), crop=(3, 1)).augment(image, None, generator(s))[0][0, 0, 0, 0]) for s in range(60)
    }
    assert first == {0, 1, 2, 3}
    maps = np.zeros((200, 20, 20), np.uint8)
    images = np.zeros((200, 20, 20, 3), np.uint8)
    _, labels = SceneTransform((20, 20), scales=(0.5, 1.5)).augment(images, maps, generator())
    assert labels is not None
    areas = (labels == 0).sum(dim=(1, 2))
    assert areas.min() <= 11**2
    assert (areas == 400).float().mean() > 0.3


def test_the_two_conventions() -> None:
    image = np.full((1, 2, 2, 3), (10, 20, 30), np.uint8)
    caffe = SceneTransform((2, 2), CONVENTIONS["caffe"]).evaluate(image)[0, :, 0, 0]
    assert torch.allclose(caffe, torch.tensor([30 - 104.00698793, 20 - 116.66876762, 10 - 122.67891434]))
    usual = SceneTransform((2, 2)).evaluate(image)[0, :, 0, 0]
    expected = [(10 / 255 - 0.485) / 0.229, (20 / 255 - 0.456) / 0.224, (30 / 255 - 0.406) / 0.225]
    assert torch.allclose(usual, torch.tensor(expected))


def test_labels_are_never_mixed_and_images_are() -> None:
    maps = np.zeros((1, 40, 40), np.uint8)
    maps[:, :, 20:] = 9
    transform = SceneTransform((13, 7))
    assert set(np.unique(transform.prepare_labels(maps))) == {0, 9}
    image = np.repeat(maps[..., None] * 20, 3, axis=3)
    assert len(np.unique(transform.prepare(image))) > 2
    assert transform.prepare(image).shape == (1, 7, 13, 3)


def test_without_chance_training_is_evaluation() -> None:
    images, maps = stripes()
    transform = SceneTransform((10, 6))
    pixels, labels = transform.train(images, maps, generator())
    assert torch.equal(pixels, transform.evaluate(images))
    assert labels is not None
    assert torch.equal(labels, torch.from_numpy(transform.prepare_labels(maps)).long())
    assert transform.train(images, None, generator())[1] is None


def test_labels_that_are_all_ignored() -> None:
    images, maps = stripes()
    _, labels = SceneTransform((20, 12), flip=True, scales=(0.5, 1.5)).train(images, maps * 0 + 255, generator())
    assert labels is not None
    assert (labels == 255).all()


def test_labels_do_not_change_what_chance_does_to_images() -> None:
    images, maps = stripes()
    transform = SceneTransform((20, 12), flip=True, scales=(0.5, 1.5), crop=(9, 9))
    with_labels, _ = transform.augment(images, maps, generator(4))
    without, _ = transform.augment(images, None, generator(4))
    assert torch.equal(with_labels, without)


@given(
    st.sampled_from(sorted(CONVENTIONS)),
    st.booleans(),
    st.sampled_from([None, (0.5, 1.5)]),
    st.sampled_from([None, (5, 4)]),
)
def test_through_json(name: str, flip: bool, scales: tuple[float, float] | None, crop: tuple[int, int] | None) -> None:
    transform = SceneTransform((9, 7), CONVENTIONS[name], flip, scales, crop)
    assert SceneTransform.from_json(json.loads(json.dumps(transform.to_json()))) == transform


def test_wrong_values() -> None:
    with pytest.raises(DataError, match="cannot be 0 pixels"):
        SceneTransform((0, 4))
    with pytest.raises(DataError, match="random scales"):
        SceneTransform((4, 4), scales=(1.5, 0.5))
    good = SceneTransform((4, 4)).to_json()
    for broken in ({}, {**good, "kind": "images"}, {**good, "convention": {}}, {**good, "size": None}):
        with pytest.raises(DataError, match="cannot be read"):
            SceneTransform.from_json(broken)
