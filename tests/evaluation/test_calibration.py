"""The temperature of confidences: found again where it is known, never below 1, and no class changes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.evaluation.calibration import fit_temperature, parse_temperature
from paretoda.evaluation.metrics import expected_calibration_error, selective


def drawn(heat, count=20_000, classes=4, seed=0):
    """Logits that are `heat` times too large for the labels that were drawn from them."""
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=rng, dtype=torch.float64) * 2
    labels = torch.multinomial(logits.softmax(1), 1, generator=rng).squeeze(1)
    return logits * heat, labels


@pytest.mark.parametrize("heat", [1.0, 1.5, 4.0])
def test_the_temperature_that_spoiled_the_logits_is_found_again(heat):
    logits, labels = drawn(heat)
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(heat, rel=0.05)
    assert expected_calibration_error(logits / found, labels) < 0.02
    assert torch.equal((logits / found).argmax(1), logits.argmax(1))


def test_a_model_that_makes_no_mistake_is_not_made_more_certain():
    logits = torch.eye(3)
    assert fit_temperature(logits, torch.arange(3)) == 1.0
    assert fit_temperature(-logits, torch.arange(3)) == 20.0


def test_samples_count_by_their_weight():
    one, other = drawn(1.2, seed=1), drawn(5.0, seed=2)
    logits, labels = torch.cat([one[0], other[0]]), torch.cat([one[1], other[1]])
    weights = torch.cat([torch.zeros(len(one[1])), torch.ones(len(other[1]))])
    assert fit_temperature(logits, labels, weights) == pytest.approx(fit_temperature(*other), abs=2e-4)
    assert fit_temperature(logits, labels, weights * 0) == pytest.approx(fit_temperature(logits, labels), abs=2e-4)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.2, 8))
def test_no_other_temperature_explains_the_labels_better(seed, heat):
    logits, labels = drawn(heat, count=60, seed=seed)
    weights = torch.rand(60, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def risk(temperature):
        losses = -torch.log_softmax(logits / temperature, 1)[torch.arange(60), labels]
        return float((weights * losses).sum() / weights.sum())

    found = risk(fit_temperature(logits, labels, weights))
    assert all(found <= risk(other) + 1e-6 for other in np.geomspace(1, 20, 60))


@pytest.mark.parametrize("wrong", ["hot", 0, -1.0, float("nan"), float("inf"), True, [1.0]])
def test_a_temperature_that_is_none_is_refused(wrong):
    assert parse_temperature(None) is None
    assert parse_temperature(2) == 2.0
    with pytest.raises(ValueError, match="temperature"):
        parse_temperature(wrong)


@given(st.integers(0, 10**6), st.floats(0, 1))
def test_what_is_answered_and_how_much_of_it_is_right(seed, threshold):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), size=20)
    labels = rng.integers(0, 3, 20)
    found = selective(torch.from_numpy(p), torch.from_numpy(labels), threshold)
    kept = [(row.argmax() == label) for row, label in zip(p, labels, strict=True) if row.max() >= threshold]
    assert found["coverage"] == pytest.approx(len(kept) / 20)
    assert found["selective_accuracy"] == (pytest.approx(np.mean(kept)) if kept else None)
