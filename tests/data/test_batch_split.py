"""Several processes read disjoint shares that are, one after the other, the batch of one process."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data import PairSettings, make_pair
from paretoda.data.segmentation import ScenePairSettings, make_scene_pair
from paretoda.distributed.collectives import Processes


@given(st.integers(0, 200), st.integers(1, 9))
def test_shares_are_consecutive_and_differ_by_one_at_most(count, size):
    shares = [Processes(rank, size).share(count) for rank in range(size)]
    assert [place for share in shares for place in range(share.start, share.stop)] == list(range(count))
    lengths = [share.stop - share.start for share in shares]
    assert max(lengths) - min(lengths) <= 1


def images(count, seed):
    return np.random.default_rng(seed).integers(0, 255, (count, 16, 16, 3), dtype=np.uint8)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("augment", ["none", "flip", "light", "standard", "strong"])
def test_augmented_shares_are_the_batch_of_one(size, augment):
    settings = PairSettings(batch_size=7, augment=augment, image_size=8, class_balanced=True)
    pair = make_pair((images(40, 0), np.arange(40) % 3), images(35, 1), settings)
    _same(pair, size)


@pytest.mark.parametrize("size", [2, 3])
def test_shares_of_scenes_are_the_batch_of_one(size):
    labels = np.random.default_rng(2).integers(0, 3, (30, 16, 16), dtype=np.uint8)
    settings = ScenePairSettings(batch_size=7, flip=True, scales=(0.5, 1.5))
    _same(make_scene_pair((images(30, 0), labels), images(35, 1), settings), size)


def _same(pair, size):
    for step in (0, 5):
        whole = pair.batch(step)
        shares = [pair.batch(step, processes=Processes(rank, size)) for rank in range(size)]
        for name, value in whole.tensors().items():
            assert torch.equal(torch.cat([getattr(share, name) for share in shares]), value), name
