"""Ten crops are corners, middle and mirrors, in the pixels of the images themselves."""

import numpy as np
import pytest
import torch

from paretoda.data.open.arrays import make_array_samples
from paretoda.data.rows import iterate_inputs
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import CROPS, ImageTransform, random_mirrors, ten_crops
from paretoda.errors import DataError

PHOTOS = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
PLAIN = ImageTransform(28, 3, (0.0,) * 3, (1.0,) * 3, "standard")


def test_the_crops_are_where_they_should_be():
    image = torch.arange(36.0).view(1, 1, 6, 6)
    views = ten_crops(image, 4)
    assert views.shape == (1, CROPS, 1, 4, 4)
    upper_left = [view[0, 0, 0].item() for view in views[0, :5]]
    assert upper_left == [0, 2, 12, 14, 7]
    for plain, mirrored in zip(views[0, :5], views[0, 5:], strict=True):
        assert torch.equal(plain.flip(-1), mirrored)


def test_the_fifth_view_is_the_middle_that_a_single_prediction_sees():
    assert PLAIN.resized == 32
    views = PLAIN.evaluate_crops(PHOTOS).unflatten(0, (3, CROPS))
    assert torch.equal(views[:, 4], PLAIN.evaluate(PHOTOS))
    corner = torch.from_numpy(PHOTOS[1, :28, :28]).permute(2, 0, 1) / 255
    torch.testing.assert_close(views[1, 0], corner)


def test_rows_of_one_image_stand_together_whatever_the_batches():
    samples = make_array_samples(PHOTOS)
    whole = torch.cat(list(iterate_inputs(samples, PLAIN, 1000, CROPS)))
    assert torch.equal(whole, PLAIN.evaluate_crops(PHOTOS))
    for batch_size in (1, 20, 25):
        parts = list(iterate_inputs(samples, PLAIN, batch_size, CROPS))
        assert [len(part) for part in parts] == ([10, 10, 10] if batch_size == 1 else [20, 10])
        assert torch.equal(torch.cat(parts), whole)


def test_what_has_no_ten_crops_is_refused():
    with pytest.raises(DataError, match="ten would be two"):
        ImageTransform(32, 3, (0.0,) * 3, (1.0,) * 3, "none").evaluate_crops(PHOTOS)
    features = make_array_samples(np.zeros((4, 2), np.float32))
    with pytest.raises(DataError, match="features have no crops"):
        list(iterate_inputs(features, FeatureTransform(torch.zeros(2), torch.ones(2)), 8, CROPS))


def test_flip_trains_on_the_middle_and_mirrors_about_half():
    flip = ImageTransform(28, 3, (0.0,) * 3, (1.0,) * 3, "flip")
    many = np.repeat(PHOTOS[:1], 64, axis=0)
    seen = flip.train(many, torch.Generator().manual_seed(0))
    middle = flip.evaluate(many[:1])[0]
    mirrored = [torch.equal(image, middle.flip(-1)) for image in seen]
    plain = [torch.equal(image, middle) for image in seen]
    assert all(one != other for one, other in zip(mirrored, plain, strict=True))
    assert 16 < sum(mirrored) < 48
    again = flip.train(many, torch.Generator().manual_seed(0))
    assert torch.equal(seen, again)


def test_mirrors_leave_their_input_alone():
    images = torch.rand(8, 1, 4, 4)
    before = images.clone()
    random_mirrors(images, torch.Generator().manual_seed(1))
    assert torch.equal(images, before)
