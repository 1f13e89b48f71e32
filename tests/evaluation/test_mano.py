"""MaNo: closed forms of both normalisations, and no reward for collapse."""

import math
from dataclasses import replace

import pytest
import torch
from evaluation.snapshots import clusters, collapsed
from hypothesis import given
from hypothesis import strategies as st

from paretoda.evaluation.validators import MaNo
from paretoda.evaluation.validators.mano import normalise_logits


def test_small_logits_take_the_polynomial_and_large_ones_softmax():
    small, large = torch.tensor([[2.0, 0.0, -2.0]]), torch.tensor([[0.0, -12.0, -12.0]])
    assert normalise_logits(small)[0].tolist() == pytest.approx([5 / 7, 1 / 7, 1 / 7])  # 5, 1 and 1
    assert normalise_logits(large)[0].tolist() == pytest.approx([1, math.exp(-12), math.exp(-12)], rel=1e-4)
    together = normalise_logits(torch.cat([small, large]))  # one decision for both
    assert together[0].tolist() == pytest.approx(torch.tensor([2.0, 0.0, -2.0]).softmax(0).tolist())


@given(st.floats(-50, 50), st.sampled_from([0.0, 1.0, 4.0, 40.0]))
def test_a_number_added_to_all_logits_changes_nothing(shift, scale):
    logits = scale * torch.randn(9, 4, generator=torch.Generator().manual_seed(0)).double()
    found = normalise_logits(logits)
    assert torch.allclose(found, normalise_logits(logits + shift))
    assert torch.allclose(found.sum(dim=1), torch.ones(9).double())


def test_the_norm_is_that_of_uniform_and_of_one_hot_predictions():
    published = MaNo(needed=0)
    uniform, sure = collapsed(60, 5, 0.0), clusters(60, 5, 1e4)
    assert published(uniform) == pytest.approx(1 / 5)
    assert published(sure) == pytest.approx((1 / 5) ** 0.25)
    assert MaNo(power=2, needed=0)(sure) == pytest.approx((1 / 5) ** 0.5)
    half = replace(sure, target=replace(sure.target, logits=torch.tensor([[1.0, -1.0]]).repeat(4, 1)))
    assert published(half) == pytest.approx((((5 / 6) ** 4 + (1 / 6) ** 4) / 2) ** 0.25)


def test_the_norm_alone_likes_collapse_and_the_discount_stops_that():
    good, bad = clusters(60, 5, 1e4), collapsed(60, 5, 1e4)
    assert MaNo(needed=0)(bad) == MaNo(needed=0)(good)
    assert MaNo()(bad) == pytest.approx(0, abs=1e-9)
    assert MaNo()(good) == MaNo(needed=0)(good)
