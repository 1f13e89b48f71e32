"""Shares and priors against counting by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.segmentation.pair import class_shares, spatial_priors


@given(st.integers(0, 100), st.integers(1, 5))
def test_shares_are_counts_of_valid_pixels(seed: int, batch: int) -> None:
    maps = torch.randint(0, 5, (7, 4, 6), generator=torch.Generator().manual_seed(seed))
    maps[maps == 4] = 255
    shares = class_shares(maps.split(batch), 6)
    valid = maps[maps != 255]
    assert torch.allclose(shares, torch.stack([(valid == k).double().mean() for k in range(6)]))
    assert shares.sum().item() == pytest.approx(1)
    assert not class_shares([maps * 0 + 255], 6).any()


@given(st.integers(0, 100), st.integers(1, 4))
def test_priors_average_one_and_do_not_depend_on_batches(seed: int, batch: int) -> None:
    maps = torch.randint(0, 4, (5, 8, 12), generator=torch.Generator().manual_seed(seed))
    maps[:, :2] = 255
    priors = spatial_priors(maps.split(batch), 5, (4, 6))
    assert priors.shape == (5, 4, 6)
    assert torch.allclose(priors.mean(dim=(1, 2)), torch.ones(5), atol=1e-5)
    assert (priors >= 0).all()
    assert (priors[4] == 1).all()
    assert torch.allclose(priors, spatial_priors([maps], 5, (4, 6)), atol=1e-6)


def test_sky_is_above_and_road_below() -> None:
    maps = torch.ones(3, 40, 40, dtype=torch.int64)
    maps[:, :20] = 0
    priors = spatial_priors([maps], 2, (40, 40))
    assert torch.allclose(priors[0, :15], torch.full((15, 40), 2.0), atol=0.02)
    assert (priors[0, 25:] < 0.02).all()
    assert torch.allclose(priors[1], priors[0].flip(0), atol=1e-5)
    edge = priors[0, 18:22, 0]
    assert (edge[:-1] > edge[1:]).all()  # smoothed
    assert 0 < edge[3] < edge[0] < 2


def test_ignored_pixels_are_not_taken_for_a_class() -> None:
    maps = torch.zeros(1, 10, 10, dtype=torch.int64)
    maps[:, :, 5:] = 1
    maps[:, :3] = 255
    some = spatial_priors([maps], 2, (10, 10))
    maps[:, :3, :5], maps[:, :3, 5:] = 0, 1
    assert torch.allclose(some[:, 5:], spatial_priors([maps], 2, (10, 10))[:, 5:], atol=0.05)
    assert (some[:, 0] == 1).all()
    assert (spatial_priors([maps * 0 + 255], 2, (10, 10)) == 1).all()
