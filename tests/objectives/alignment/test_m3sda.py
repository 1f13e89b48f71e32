from itertools import combinations

import numpy as np
import pytest
import torch

from paretoda.objectives import M3sda
from paretoda.types import Source, Target

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("moments", [1, 2, 4])
@pytest.mark.parametrize("sources", [1, 2, 3])
def test_the_value_is_that_of_the_formula(sources, moments):
    rows = [RNG.normal(size=(5, 4)) + number for number in range(sources)]
    target = RNG.normal(size=(7, 4))
    wanted = 0.0
    for k in range(1, moments + 1):
        means = [(part**k).mean(0) for part in rows]
        wanted += np.mean([np.linalg.norm(mean - (target**k).mean(0)) for mean in means])
        if sources > 1:
            wanted += np.mean([np.linalg.norm(one - other) for one, other in combinations(means, 2)])
    order = torch.from_numpy(RNG.permutation(5 * sources))
    features = torch.from_numpy(np.concatenate(rows))[order]
    domain = torch.arange(sources).repeat_interleave(5)[order] if sources > 1 else None
    source = Source(features, torch.zeros(len(order), 2), order, labels=0 * order, domain=domain)
    found = M3sda(4, 2, moments=moments, strength=0.5)(
        source, Target(torch.from_numpy(target), torch.zeros(7, 2), torch.arange(7))
    )
    assert found.item() == pytest.approx(0.5 * wanted)


def test_equal_domains_have_the_value_and_the_gradient_zero():
    features = torch.randn(4, 3, requires_grad=True)
    index = torch.arange(4)
    source = Source(features[index % 2], torch.zeros(4, 2), index, labels=index % 2, domain=index // 2)
    loss = M3sda(3, 2)(source, Target(features[:2], torch.zeros(2, 2), index[:2]))
    loss.backward()
    assert loss.item() == 0
    assert bool((features.grad == 0).all())


def test_options_out_of_range_are_refused():
    for options in ({"moments": 0}, {"strength": 0.0}):
        with pytest.raises(ValueError, match="moments must be at least 1 and strength positive"):
            M3sda(4, 2, **options)
