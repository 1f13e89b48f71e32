"""The regressor: scikit-learn's own contract, the same weights as `adapt`, and target values that are not read."""

import inspect
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from paretoda import ParetoDARegressor, adapt
from paretoda.run.settings import SETTINGS
from paretoda.tasks.settings import make_settings

SMALL = {"steps": 6, "bottleneck": 8, "batch_size": 16, "select": "last"}
LEFT_OUT = {"from_run", "label_loss", "reference"}
"""Settings for arrays that regression refuses."""


@parametrize_with_checks([ParetoDARegressor(steps=100, bottleneck=8, batch_size=32)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def data():
    rng = np.random.default_rng(0)
    xs, xt = rng.normal(size=(90, 4)), rng.normal(size=(60, 4)) + 1
    return xs, 10 + xs.sum(axis=1), xt, 10 + xt.sum(axis=1)


def test_parameters_are_the_settings_of_regression_for_arrays_with_its_defaults():
    parameters = {
        name.replace("random_state", "seed"): parameter
        for name, parameter in inspect.signature(ParetoDARegressor.__init__, eval_str=True).parameters.items()
        if name != "self"
    }
    settings = make_settings({"task": "regression"})
    wanted = [
        name
        for name, setting in SETTINGS.items()
        if (setting.arrays and setting.tasks in ((), ("classification", "regression")) and name not in LEFT_OUT)
        or name == "source_loss"
    ]
    assert list(parameters) == wanted
    for name, parameter in parameters.items():
        assert parameter.default == getattr(settings, name), name
        kind = str if get_origin(SETTINGS[name].kind) is Literal else SETTINGS[name].kind
        assert kind in (parameter.annotation, *get_args(parameter.annotation))


@pytest.mark.parametrize(
    "chosen", [{}, {"method": "dann", "scheme": "mgda", "seed": 3}, {"method": "source-only"}, {"method": "dann+bsp"}]
)
def test_adapt_and_the_regressor_give_the_same_weights(chosen):
    xs, ys, xt, _ = data()
    run = adapt((xs, ys), xt, task="regression", **SMALL, **chosen)
    given = {name.replace("seed", "random_state"): value for name, value in chosen.items()}
    model = ParetoDARegressor(**SMALL, **given).fit(xs, ys, xt)
    assert model.run_.settings == run.settings
    one, other = model.run_.model.model.state_dict(), run.model.model.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    np.testing.assert_allclose(model.predict(xt), run.predict(xt), rtol=1e-4)


def test_both_ways_to_give_domains_are_the_same_and_values_of_the_target_are_not_read():
    xs, ys, xt, _ = data()
    x, domain = np.concatenate([xs, xt]), np.repeat([1, -1], [90, 60])
    apart = ParetoDARegressor(**SMALL).fit(xs, ys, xt).predict(xt)
    for fill in (np.nan, 1e9):
        y = np.concatenate([ys, np.full(60, fill)])
        np.testing.assert_array_equal(ParetoDARegressor(**SMALL).fit(x, y, domain).predict(xt), apart)


def test_rows_of_the_source_are_scaled_as_rows_of_the_source():
    xs, ys, xt, _ = data()
    model = ParetoDARegressor(**SMALL, scaling="per-domain").fit(xs, ys, xt)
    x, domain = np.concatenate([xt[:5], xs[:5]]), np.repeat([-1, 1], 5)
    found = model.predict(x, domain)
    np.testing.assert_allclose(found[:5], model.predict(xt[:5]))
    assert not np.allclose(found[5:], model.predict(xs[:5]))
    np.testing.assert_allclose(found[5:], model.run_.source_model.predict(xs[:5]), rtol=1e-4)


def test_it_beats_the_mean_on_a_shifted_target():
    xs, ys, xt, yt = data()
    score = ParetoDARegressor(steps=200).fit(xs, ys, xt).score(xt, yt)
    assert score > 0.3 > r2_score(yt, np.full(60, ys.mean()))


def test_values_of_the_source_must_be_finite_numbers():
    xs, ys, xt, _ = data()
    with pytest.raises(ValueError, match="NaN"):
        ParetoDARegressor(**SMALL).fit(xs, np.where(ys > 10, np.nan, ys), xt)
