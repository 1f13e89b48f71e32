"""`fit` is the main job: the same weights, every kind of input, and no look at the target's labels."""

import inspect
from typing import Literal, get_args, get_origin

import numpy as np
import pandas as pd
import pytest
import torch

from paretoda import ParetoDAClassifier, ParetoDATransformer, adapt
from paretoda.errors import SettingsError
from paretoda.estimator import NegativeTransferWarning
from paretoda.run.interrupt import InterruptedRunError
from paretoda.run.result import Run
from paretoda.run.settings import SETTINGS


def same(one, two):
    a, b = one.model.model.state_dict(), two.model.model.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def test_parameters_are_the_settings_for_arrays_with_the_same_types_and_defaults():
    parameters = {
        name.replace("random_state", "seed"): parameter
        for name, parameter in inspect.signature(ParetoDAClassifier.__init__, eval_str=True).parameters.items()
        if name != "self"
    }
    settings = {name: setting for name, setting in SETTINGS.items() if setting.arrays}
    assert list(parameters) == list(settings)
    for name, setting in settings.items():
        assert parameters[name].default == setting.default
        kind = str if get_origin(setting.kind) is Literal else setting.kind
        assert kind in (parameters[name].annotation, *get_args(parameters[name].annotation))
    assert ParetoDATransformer().get_params() == ParetoDAClassifier().get_params()


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"method": "cdan-e", "target_loss": "im", "scheme": "mgda", "seed": 3},
        {"method": "mdd+entropy", "scheme": "linear", "loss_weights": (1.0, 0.5, 0.1)},
        {"method": "source-only", "select": "ensemble", "evaluate_every": 3},
    ],
)
def test_adapt_and_the_estimator_give_the_same_weights(toy, small, chosen):
    settings = small | chosen
    run = adapt((toy.xs, toy.ys), toy.xt, **settings)
    settings["random_state"] = settings.pop("seed", 0)
    model = ParetoDAClassifier(**settings).fit(toy.xs, toy.ys, toy.xt)
    assert model.run_.settings == run.settings
    assert same(model.run_, run)
    assert model.history_ == run.history
    assert model.scores_ == run.scores
    assert model.warnings_ == run.sentences
    assert np.array_equal(model.predict(toy.xt).astype(str), run.predict(toy.xt))
    assert np.allclose(model.predict_proba(toy.xt), run.predict_proba(toy.xt), atol=1e-5)


def test_domains_in_one_array_are_split_as_skada_does(toy, small):
    two = ParetoDAClassifier(**small).fit(toy.x[toy.domain > 0], toy.y[toy.domain > 0], toy.x[toy.domain < 0])
    for domain in (toy.domain, np.sign(toy.domain), toy.domain.astype(float), list(7 * toy.domain)):
        one = ParetoDAClassifier(**small).fit(toy.x, toy.y, domain)
        assert same(one.run_, two.run_)
    assert one.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("garbage", [7, np.nan, None, "garbage", "mixed"])
def test_what_stands_at_target_rows_of_y_is_never_read(toy, small, garbage):
    masked = ParetoDAClassifier(**small).fit(toy.x, toy.y, toy.domain)
    if garbage == "mixed":
        y = toy.y.tolist()
        for place, row in enumerate(np.flatnonzero(toy.domain < 0)):
            y[row] = ["junk", None, 3.5][place % 3]
    else:
        y = np.where(toy.domain > 0, toy.y, None).astype(object)
        y[toy.domain < 0] = garbage
        y = y.astype(float) if isinstance(garbage, float) else y.tolist()
    other = ParetoDAClassifier(**small).fit(toy.x, y, toy.domain)
    assert same(masked.run_, other.run_)
    assert other.classes_.tolist() == [0, 1, 2]


def test_without_domains_only_the_source_is_learnt(toy, small):
    model = ParetoDAClassifier(**small).fit(toy.xs, toy.ys)
    assert model.run_.settings.method == "source-only"
    assert set(model.history_[0]["losses"]) == {"source"}
    assert model.scores_ == {}
    assert "no target" in model.warnings_[-1]
    assert same(model.run_, adapt((toy.xs, toy.ys), method="source-only", **small))


def test_a_moved_target_is_classified_and_the_source_not_forgotten(toy):
    settings = {"steps": 60, "bottleneck": 16, "select": "last", "reference": False}
    model = ParetoDAClassifier(**settings).fit(toy.x, toy.y, toy.domain)
    assert model.score(toy.xt, toy.yt) > 0.95
    assert model.score(toy.xs, toy.ys, np.ones(90)) > 0.95
    assert model.score(toy.x, toy.truth, toy.domain) > 0.95


def test_source_rows_are_scaled_as_in_training(toy, small):
    model = ParetoDATransformer(**small).fit(toy.x, toy.y, toy.domain)
    joint = model.transform(toy.x, toy.domain)
    assert np.allclose(joint[toy.domain < 0], model.transform(toy.x[toy.domain < 0]))
    assert not np.allclose(joint[toy.domain > 0], model.transform(toy.x[toy.domain > 0]))
    assert np.allclose(joint, ParetoDATransformer(**small).fit_transform(toy.x, toy.y, toy.domain))
    third = ParetoDATransformer(**small).fit_transform(toy.x[toy.domain > 0], toy.y[toy.domain > 0], toy.xt)
    assert third.shape == (90, 8)
    several = ParetoDATransformer(**small, members=3).fit(toy.x, toy.y, toy.domain)
    assert several.transform(toy.x, toy.domain).shape == (len(toy.x), 3 * 8)
    assert len(several.get_feature_names_out()) == 3 * 8
    assert list(model.get_feature_names_out()[:2]) == ["paretodatransformer0", "paretodatransformer1"]


def test_arrays_frames_and_tensors_make_no_difference(toy, small):
    plain = ParetoDAClassifier(**small).fit(toy.xs, toy.ys, toy.xt)
    frame = pd.DataFrame(toy.xs, columns=list("abcde"))
    framed = ParetoDAClassifier(**small).fit(frame, pd.Series(toy.ys), pd.DataFrame(toy.xt, columns=list("abcde")))
    tensors = [torch.tensor(what, requires_grad=what.dtype == float) for what in (toy.xs, toy.ys, toy.xt)]
    tensed = ParetoDAClassifier(**small).fit(*tensors)
    mixed = ParetoDAClassifier(**small).fit(torch.tensor(toy.x), torch.tensor(toy.y), torch.tensor(toy.domain))
    assert same(plain.run_, framed.run_)
    assert same(plain.run_, tensed.run_)
    assert mixed.score(torch.tensor(toy.xt), toy.yt) > 0.3
    assert framed.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(plain.predict(toy.xt), tensed.predict(tensors[2]))
    with pytest.raises(ValueError, match="feature names should match"):
        framed.predict(pd.DataFrame(toy.xt, columns=list("edcba")))


def test_class_names_survive(toy, small):
    names = np.array(["früh", "mid", "late"], dtype=object)
    model = ParetoDAClassifier(**small).fit(toy.xs, names[toy.ys], toy.xt)
    assert model.classes_.tolist() == sorted(names)
    assert set(model.predict(toy.xt)) <= set(names)
    assert model.run_.classes == tuple(sorted(names))


@pytest.mark.parametrize(
    ("third", "message"),
    [
        (np.zeros(150), "integers above 0"),
        (np.full(150, 1.5), "integers above 0"),
        (np.full(150, "a"), "integers above 0"),
        (np.ones(150), "no target row"),
        (-np.ones(150), "no source row"),
        (np.ones(7), "150 rows"),
        (np.ones((30, 4)), "4 features"),
        (np.full((30, 5), np.nan), "NaN"),
        (np.ones((10, 5)), "at least 20"),
    ],
)
def test_domains_that_cannot_be_get_a_clear_error(toy, small, third, message):
    with pytest.raises(ValueError, match=message):
        ParetoDAClassifier(**small).fit(toy.x, toy.truth, third)


def test_bad_settings_and_weights_of_samples_get_a_clear_error(toy):
    with pytest.raises(SettingsError, match="did you mean 'dann'"):
        ParetoDAClassifier(method="dannn").fit(toy.xs, toy.ys)
    with pytest.raises(SettingsError, match="steps"):
        ParetoDAClassifier(steps=0).fit(toy.xs, toy.ys)
    with pytest.raises(TypeError, match="sample_weight"):
        ParetoDAClassifier().fit(toy.xs, toy.ys, sample_weight=np.ones(90))
    with pytest.raises(ValueError, match="only one class"):
        ParetoDAClassifier().fit(toy.xs, np.zeros(90, int))
    with pytest.raises(ValueError, match="single sample"):
        ParetoDAClassifier().fit(toy.xs[:3], toy.ys[:3])


def test_chance_is_the_callers_where_no_seed_is_given(toy, small):
    fits = [
        ParetoDAClassifier(**small, random_state=np.random.RandomState(seed)).fit(toy.xs, toy.ys) for seed in (0, 0, 1)
    ]
    assert same(fits[0].run_, fits[1].run_)
    assert not same(fits[0].run_, fits[2].run_)
    before = torch.get_rng_state()
    ParetoDAClassifier(**small, random_state=None).fit(toy.xs, toy.ys)
    assert torch.equal(before, torch.get_rng_state())


def test_negative_transfer_is_a_warning_and_a_stop_is_an_interrupt(toy, small, monkeypatch):
    run = adapt((toy.xs, toy.ys), toy.xt, **small)

    def worse(*_given, **_settings):
        return Run(**{**vars(run), "negative_transfer": "Adaptation may have made the model worse."})

    monkeypatch.setattr("paretoda.estimator.estimators.adapt", worse)
    with pytest.warns(NegativeTransferWarning, match="made the model worse"):
        ParetoDAClassifier(**small).fit(toy.xs, toy.ys, toy.xt)

    def stopped(*_given, **_settings):
        raise InterruptedRunError("stopped after 3 of 6 steps")

    monkeypatch.setattr("paretoda.estimator.estimators.adapt", stopped)
    with pytest.raises(KeyboardInterrupt, match="3 of 6"):
        ParetoDAClassifier(**small).fit(toy.xs, toy.ys, toy.xt)
