"""Objectives that compare kernels and spectra keep their digits where the network runs in half precision."""

import pytest
import torch
from objectives.samples import Samples, gradients

from paretoda.objectives import Afn, Bnm, Bsp, Coral, Dan, Ddc, Jan, JanA, Mcc
from paretoda.objectives.parts.differentiation import full_precision


@full_precision
def product(one, other, factor=1.0):
    return factor * (one @ other)


def test_autocast_does_not_reach_inside_and_half_precision_is_raised():
    one, other = torch.full((1, 1), 1 + 2**-12), torch.ones(1, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (one @ other).item() == 1
        assert product(one, other).item() == 1 + 2**-12
        assert (one @ other).dtype is torch.bfloat16  # afterwards it is as it was
    assert product(one.bfloat16(), other.half()).dtype is torch.float32
    assert product(one.double(), other.double(), factor=2.0).dtype is torch.float64
    assert product.__name__ == "product"


@pytest.mark.parametrize(
    "make",
    [Dan, lambda f, k: Dan(f, k, estimator="u"), Ddc, Jan, JanA, Coral, Afn, Bsp, Mcc, Bnm],
    ids=["dan", "dan unbiased", "ddc", "jan", "jan-a", "coral", "afn", "bsp", "mcc", "bnm"],
)
def test_under_autocast_value_and_gradient_are_nearly_those_of_single_precision(make):
    samples = Samples(dtype=torch.float32)
    objective = make(samples.features, samples.classes)
    exact = objective(*samples.batch())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        batch = samples.batch()
        assert batch[0].features.dtype is torch.bfloat16
        found = objective(*batch)
    assert found.dtype is torch.float32
    assert found.item() == pytest.approx(exact.item(), rel=0.05)
    one, other = (torch.cat([g.flatten() for g in gradients(value, samples.body())]) for value in (found, exact))
    assert torch.cosine_similarity(one, other, dim=0).item() > 0.99
