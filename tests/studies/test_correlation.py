"""Correlations against scipy, and on checkpoints with known answers."""

from math import isnan, nan

import numpy as np
import pytest
from scipy.stats import spearmanr

from paretoda.studies.guides import (
    between_run_correlation,
    finite_mean,
    pooled_correlation,
    spearman,
    within_run_correlation,
)


def test_spearman_is_scipys() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 6, 40).astype(float), rng.normal(size=40)
    assert spearman(first.tolist(), second.tolist()) == pytest.approx(spearmanr(first, second).statistic)


def test_what_is_constant_too_short_or_not_finite_has_no_correlation() -> None:
    assert isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert isnan(spearman([1, 2], [1, 2]))
    assert spearman([1, 2, 3, nan], [1, 2, 3, -9]) == pytest.approx(1)
    assert isnan(finite_mean([nan]))
    assert finite_mean([nan, 2.0]) == 2.0


def test_within_runs_and_over_all_may_say_the_opposite() -> None:
    lines = [
        {
            "task": "t",
            "name": "linear",
            "seed": seed,
            "step": step,
            "oracle_accuracy": 0.1 * step + seed,
            "criteria": {"good": 0.1 * step + seed, "opposite": step - 100 * seed},
        }
        for seed in range(4)
        for step in range(1, 6)
    ]
    assert pooled_correlation(lines, "good") == {"t": pytest.approx(1)}
    assert within_run_correlation(lines, "good") == pytest.approx(1)
    assert within_run_correlation(lines, "opposite") == pytest.approx(1)
    assert pooled_correlation(lines, "opposite")["t"] < -0.8
    assert between_run_correlation(lines, "opposite") == pytest.approx(-1)
