"""Errors of values against scikit-learn, and the label-free risks of regression against the true one."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from paretoda.evaluation.validators import VALUE_VALIDATORS, WITH_SOURCE
from paretoda.evaluation.value_errors import measure_values
from paretoda.types import Source, Target


@pytest.mark.parametrize("seed", range(5))
def test_the_measures_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(5, 3, size=50)
    predicted = truth + rng.normal(size=50) * seed
    found = measure_values(predicted, truth)
    assert found["mae"] == pytest.approx(mean_absolute_error(truth, predicted))
    assert found["rmse"] == pytest.approx(root_mean_squared_error(truth, predicted))
    assert found["r2"] == pytest.approx(r2_score(truth, predicted))


def test_equal_values_leave_nothing_to_explain():
    assert measure_values(np.array([1.0, 2.0]), np.array([3.0, 3.0]))["r2"] == 0


def snapshot(shift):
    """A model that is wrong by x on a target whose x is shifted."""
    torch.manual_seed(0)

    def domain(count, mean):
        return torch.randn(count, 1) + mean

    def source(count):
        x = domain(count, 0.0)
        return Source(x, torch.zeros(count, 1), torch.arange(count), labels=x[:, 0])

    x = domain(2000, shift)
    target = Target(x, torch.zeros(2000, 1), torch.arange(2000))
    return SimpleNamespace(source=source(2000), held_out_source=source(1500), target=target), x.square().mean().item()


def test_the_source_risk_is_the_mean_squared_error_of_the_held_out_source():
    seen, _ = snapshot(0.0)
    wanted = seen.held_out_source.labels.square().mean().item()
    assert -VALUE_VALIDATORS["source-risk"]()(seen) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("shift", [0.5, 1.0])
def test_dev_estimates_the_squared_risk_on_a_shifted_target(shift):
    seen, risk = snapshot(shift)
    estimate, plain = (-VALUE_VALIDATORS[name]()(seen) for name in ("dev", "source-risk"))
    assert abs(estimate - risk) < 0.5 * abs(plain - risk)
    assert estimate == pytest.approx(risk, rel=0.25)


def test_all_of_them_read_values_of_the_source():
    assert set(VALUE_VALIDATORS) <= set(WITH_SOURCE)
