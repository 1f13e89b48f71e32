import json

import numpy as np
import pytest
import torch
from PIL import Image

from paretoda.data.transforms import IMAGENET, ImageTransform, transform_from_json
from paretoda.errors import DataError

PHOTO = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
GREY = PHOTO[..., 0]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("augment", ["none", "light", "standard", "strong"])
@pytest.mark.parametrize("channels", [1, 3])
def test_any_images_become_one_batch(augment: str, channels: int) -> None:
    transform = ImageTransform(14, channels, (0.5,) * channels, (0.5,) * channels, augment)
    for raw in ([PHOTO, GREY, PHOTO[:5, :40]], np.stack([PHOTO, PHOTO]), np.stack([GREY])):
        for batch in (transform.train(raw, seeded()), transform.evaluate(raw)):
            assert batch.shape == (len(raw), channels, 14, 14)
            assert batch.dtype == torch.float32
            assert batch.min() >= -1
            assert batch.max() <= 1


def test_conversion_and_resizing_are_pillows() -> None:
    transform = ImageTransform(9, 1, (0.0,), (1.0,))
    oracle = Image.fromarray(PHOTO).convert("L").resize((9, 9), Image.Resampling.BILINEAR)
    found = transform.evaluate([PHOTO])[0, 0] * 255
    assert np.abs(found.numpy() - np.asarray(oracle)).max() < 1e-3


def test_an_array_and_a_list_of_the_same_images_give_the_same_tensors() -> None:
    transform = ImageTransform(16, 3, *IMAGENET, "standard")
    rows = np.stack([PHOTO, PHOTO[::-1]])
    assert torch.equal(transform.evaluate(rows), transform.evaluate(list(rows)))
    assert torch.equal(transform.train(rows, seeded()), transform.train(transform.prepare(list(rows)), seeded()))


def test_normalisation_is_by_channel() -> None:
    found = ImageTransform(4, 3, *IMAGENET).evaluate(np.full((1, 4, 4, 3), 255, dtype=np.uint8))
    for channel in range(3):
        expected = (1 - IMAGENET[0][channel]) / IMAGENET[1][channel]
        assert torch.allclose(found[0, channel], torch.tensor(expected))
    with pytest.raises(DataError, match="3 channels"):
        ImageTransform(4, 3, (0.5,), (0.5,))


def test_evaluation_takes_the_middle_of_an_enlarged_image() -> None:
    image = np.zeros((16, 16), dtype=np.uint8)
    image[1:15, 1:15] = 255
    assert ImageTransform(14, 1, (0.0,), (1.0,), "standard").evaluate(image[None]).min() == 1


def test_light_augmentation_never_mirrors() -> None:
    gradient = np.tile(np.linspace(0, 255, 16).astype(np.uint8), (32, 16, 1))
    for augment, mirrored in (("light", False), ("standard", True)):
        batch = ImageTransform(14, 1, (0.0,), (1.0,), augment).train(gradient, seeded())
        assert bool((batch[..., 0] > batch[..., -1]).any()) is mirrored


def test_none_means_that_training_equals_evaluation() -> None:
    transform = ImageTransform(16, 3, *IMAGENET)
    assert torch.equal(transform.train([PHOTO], seeded()), transform.evaluate([PHOTO]))


def test_a_transform_survives_storage() -> None:
    transform = ImageTransform(16, 3, *IMAGENET, "light")
    assert transform_from_json(json.loads(json.dumps(transform.to_json())), {}) == transform


@pytest.mark.parametrize(
    "data", [{}, {"kind": "sound"}, {"kind": "images", "size": 3}, {"kind": "features", "width": 3}]
)
def test_a_damaged_transform_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        transform_from_json(data, {})
