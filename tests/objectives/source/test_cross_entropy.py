import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, silent, source_of, target_of

from paretoda.objectives import CrossEntropy


@pytest.mark.parametrize("classes", [2, 3, 65])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_uniform_prediction_costs_log_k(classes, smoothing):
    source = source_of(torch.zeros(4, 2), torch.zeros(4, classes))
    target = target_of(torch.zeros(4, 2), torch.zeros(4, classes))
    assert CrossEntropy(2, classes, smoothing=smoothing)(source, target).item() == pytest.approx(math.log(classes))


@given(st.floats(0, 0.99), st.integers(0, 1000))
def test_smoothing_mixes_the_label_with_the_uniform_distribution(smoothing, seed):
    samples = Samples(seed=seed)
    source, target = samples.batch()
    log_p = source.logits.log_softmax(1)
    plain = -log_p[torch.arange(9), source.labels].mean()
    expected = (1 - smoothing) * plain - smoothing * log_p.mean()
    assert CrossEntropy(6, 3, smoothing=smoothing)(source, target).item() == pytest.approx(expected.item())


def test_the_target_is_not_looked_at():
    samples = Samples()
    source, target = samples.batch()
    loss = CrossEntropy(6, 3)(source, target)
    assert silent(loss, [target.features, target.logits])
    assert loss.item() == CrossEntropy(6, 3)(source, target_of(target.features + 5, -target.logits)).item()


def test_a_label_cannot_be_smoothed_away():
    with pytest.raises(ValueError, match="smoothing"):
        CrossEntropy(6, 3, smoothing=1.0)
