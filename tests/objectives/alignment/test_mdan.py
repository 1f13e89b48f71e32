import pytest
import torch
from objectives.samples import Samples
from torch import nn

from paretoda.objectives import CrossEntropy, Dann, Mdan
from paretoda.objectives.alignment.mdan import soft_maximum
from paretoda.types import Source


def two_sources():
    samples = Samples()
    source, target = samples.batch()
    domain = torch.tensor([0] * 4 + [1] * 5)
    both = Source(source.features, source.logits, source.index, labels=source.labels, domain=domain)
    return both, target


def parts(objective, source, target):
    """Cross-entropy plus divergence of each source, by the objectives that have one source."""
    found = []
    for number, network in enumerate(objective.discriminators):
        dann = Dann(6, 3, hidden=8, warm_up=False).double()
        dann.discriminator = network
        own = source.of(number)
        found.append(CrossEntropy(6, 3)(own, target) + dann(own, target))
    return torch.stack(found)


@pytest.mark.parametrize("maximum", ["hard", "soft"])
def test_the_value_is_the_maximum_over_the_sources_of_cross_entropy_and_divergence(maximum):
    source, target = two_sources()
    objective = Mdan(6, 3, sources=2, maximum=maximum, sharpness=3.0, hidden=8, warm_up=False).double()
    sums = parts(objective, source, target)
    assert sums[0] != sums[1]
    wanted = sums.max() if maximum == "hard" else (3 * sums).exp().sum().log() / 3
    torch.testing.assert_close(objective(source, target), wanted)


def test_the_soft_maximum_is_above_the_hard_one_by_log_n_over_the_sharpness_at_most():
    values = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    for row in values:
        excess = soft_maximum(row, 5.0) - row.max()
        assert -1e-6 <= excess <= torch.log(torch.tensor(3.0)) / 5 + 1e-6


def test_every_discriminator_learns_from_its_own_source():
    source, target = two_sources()
    objective = Mdan(6, 3, sources=2, hidden=8).double()
    objective.private_loss(source, target).backward()
    grads = [next(network.parameters()).grad.clone() for network in objective.discriminators]
    objective.zero_grad()
    dann = Dann(6, 3).double()
    dann.discriminator = objective.discriminators[1]
    dann.private_loss(source.of(1), target).backward()
    torch.testing.assert_close(next(objective.discriminators[1].parameters()).grad, grads[1])
    assert all(bool(grad.abs().sum() > 0) for grad in grads)


def test_options_out_of_range_are_refused():
    with pytest.raises(ValueError, match="maximum must be 'soft' or 'hard', got 'max'"):
        Mdan(6, 3, maximum="max")
    with pytest.raises(ValueError, match="sharpness must be positive"):
        Mdan(6, 3, sharpness=0)
    assert isinstance(Mdan(6, 3, sources=3).discriminators, nn.ModuleList)
