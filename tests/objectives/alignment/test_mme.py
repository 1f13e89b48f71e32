import pytest
import torch
from objectives.samples import Samples, gradients, silent, target_of

from paretoda.objectives import Entropy, Mme
from paretoda.objectives.parts.differentiation import call_reversed


def test_the_value_is_a_tenth_of_the_entropy_and_the_source_has_no_part_in_it():
    samples = Samples()
    source, target = samples.batch()
    torch.testing.assert_close(Mme(6, 3)(source, target), 0.1 * Entropy(6, 3)(source, target))
    torch.testing.assert_close(Mme(6, 3, strength=2.0)(source, target), 2.0 * Entropy(6, 3)(source, target))
    assert silent(Mme(6, 3)(source, target), [source.features])


def test_the_encoder_lowers_the_entropy_and_the_head_raises_it():
    samples = Samples()
    source, target = samples.batch()
    ours, plain = Mme(6, 3, strength=1.0)(source, target), Entropy(6, 3)(source, target)
    for mine, theirs in zip(gradients(ours, samples.body()), gradients(plain, samples.body()), strict=True):
        torch.testing.assert_close(mine, theirs)
        assert mine.any()
    for mine, theirs in zip(gradients(ours, samples.heads()), gradients(plain, samples.heads()), strict=True):
        torch.testing.assert_close(mine, -theirs)
        assert mine.any()


def test_a_reversed_network_with_batch_normalisation_updates_its_statistics_once():
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    rows = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(call_reversed(network, rows), network(rows))
    assert int(network[1].num_batches_tracked) == 2


def test_a_head_that_cannot_be_trained_is_refused():
    samples = Samples()
    features = samples.target().features
    with pytest.raises(ValueError, match="give Target the head's module"):
        Mme(6, 3)(samples.source(), target_of(features, samples.head(features)))
    with pytest.raises(ValueError, match="strength"):
        Mme(6, 3, strength=-1.0)
