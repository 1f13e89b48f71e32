"""The estimators inside scikit-learn's machinery: pipelines, searches, copies, other processes."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paretoda import ParetoDAClassifier, ParetoDATransformer
from paretoda.estimator import scorer
from paretoda.evaluation.validators import VALIDATORS


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_a_pipeline_hands_the_domains_on(toy, small):
    by_default = make_pipeline(StandardScaler(), ParetoDAClassifier(**small)).fit(
        toy.x, toy.y, sample_domain=toy.domain
    )
    asked = make_pipeline(StandardScaler(), ParetoDAClassifier(**small).set_fit_request(sample_domain=True))
    asked.fit(toy.x, toy.y, sample_domain=toy.domain)
    assert by_default[-1].run_.settings.method == "dann"
    assert np.array_equal(by_default.predict_proba(toy.xt), asked.predict_proba(toy.xt))
    scaled = StandardScaler().fit_transform(toy.x)
    alone = ParetoDAClassifier(**small).fit(scaled, toy.y, toy.domain)
    assert np.array_equal(alone.predict_proba(scaled), by_default.predict_proba(toy.x))
    both = by_default.predict_proba(toy.x, sample_domain=toy.domain)
    assert np.array_equal(alone.predict_proba(scaled, toy.domain), both)


def test_without_routing_a_pipeline_takes_the_step_s_name(toy, small):
    model = make_pipeline(StandardScaler(), ParetoDAClassifier(**small))
    model.fit(toy.x, toy.y, paretodaclassifier__sample_domain=toy.domain)
    assert model[-1].run_.settings.method == "dann"


def test_another_classifier_learns_on_adapted_features(toy, small):
    features = ParetoDATransformer(**small | {"steps": 40})
    rows = features.fit_transform(toy.x, toy.y, sample_domain=toy.domain)
    source = toy.domain > 0
    head = LogisticRegression().fit(rows[source], toy.y[source])
    assert head.score(features.transform(toy.xt), toy.yt) > 0.9


def test_copies_have_the_same_parameters_and_pickles_the_same_weights(toy, small):
    model = ParetoDAClassifier(**small).fit(toy.x, toy.y, toy.domain)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "run_")
    thawed = pickle.loads(pickle.dumps(model))
    state, again = model.run_.model.model.state_dict(), thawed.run_.model.model.state_dict()
    assert all(torch.equal(state[key], again[key]) for key in state)
    assert np.array_equal(model.predict_proba(toy.xt), thawed.predict_proba(toy.xt))


@pytest.mark.parametrize("name", VALIDATORS)
def test_a_scorer_is_its_validator_and_reads_no_target_label(toy, small, name):
    model = ParetoDAClassifier(**small).fit(toy.x, toy.y, toy.domain)
    score = scorer(name)(model, toy.x, toy.y, sample_domain=toy.domain)
    assert np.isfinite(score)
    garbage = np.where(toy.domain > 0, toy.y, 99)
    assert scorer(name)(model, toy.x, garbage, sample_domain=toy.domain) == score
    if name in ("circv", "dev", "source-risk"):
        with pytest.raises(ValueError, match="labelled source rows"):
            scorer(name)(model, toy.xt)
        return
    assert scorer(name)(model, toy.x, None, sample_domain=toy.domain) == score
    assert scorer(name)(model, toy.x[toy.domain < 0]) == pytest.approx(score)


def test_source_risk_is_the_error_on_source_rows(toy, small):
    model = ParetoDAClassifier(**small).fit(toy.x, toy.y, toy.domain)
    source = toy.domain > 0
    right = model.score(toy.x[source], toy.y[source], sample_domain=toy.domain[source])
    assert scorer("source-risk")(model, toy.x, toy.y, sample_domain=toy.domain) == pytest.approx(right - 1)


def test_a_scorer_looks_through_pipelines_and_refuses_the_rest(toy, small):
    model = make_pipeline(StandardScaler(), ParetoDAClassifier(**small))
    model.fit(toy.x, toy.y, paretodaclassifier__sample_domain=toy.domain)
    scaled = model[:-1].transform(toy.x)
    assert scorer("im")(model, toy.x) == scorer("im")(model[-1], scaled)
    with pytest.raises(TypeError, match="LogisticRegression"):
        scorer("im")(LogisticRegression().fit(toy.xs, toy.ys), toy.xt)
    with pytest.raises(ValueError, match="did you mean 'entropy'"):
        scorer("entropi")
    with pytest.raises(ValueError, match="target rows"):
        scorer("im")(model, toy.xs, sample_domain=np.ones(90))
    with pytest.raises(ValueError, match="not there in fit"):
        scorer("source-risk")(model, toy.x, toy.y + 5, sample_domain=toy.domain)


@pytest.mark.usefixtures("routing")
def test_a_search_chooses_without_target_labels(toy, small):
    model = make_pipeline(StandardScaler(), ParetoDAClassifier(**small | {"steps": 3}))
    grid = {"paretodaclassifier__lr": [1e-5, 0.05], "paretodaclassifier__method": ["dann"]}
    search = GridSearchCV(model, grid, scoring=scorer("im"), cv=2, error_score="raise")
    search.fit(toy.x, toy.y, sample_domain=toy.domain)
    assert search.best_params_["paretodaclassifier__lr"] == 0.05
    assert search.best_estimator_[-1].run_.settings.target_loss == "mcc+propagation"  # auto, on features


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_a_parallel_search_gives_the_same_scores(toy, small):
    scores = []
    for jobs in (1, 2):
        search = GridSearchCV(
            ParetoDAClassifier(**small), {"lr": [0.001, 0.05]}, scoring=scorer("mixval"), cv=2, n_jobs=jobs
        )
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            search.fit(toy.x, toy.y, sample_domain=toy.domain)
        scores.append(search.cv_results_["mean_test_score"])
    assert np.array_equal(scores[0], scores[1])


@pytest.mark.slow
def test_fits_in_other_processes_give_the_same_weights(toy, small):
    here = ParetoDAClassifier(**small).fit(toy.xs, toy.ys, toy.xt)
    fit = joblib.delayed(ParetoDAClassifier(**small).fit)
    with joblib.parallel_config(inner_max_num_threads=1, backend="loky"):
        there = joblib.Parallel(n_jobs=2)(fit(toy.xs, toy.ys, toy.xt) for _ in range(2))
    for model in there:
        state, again = here.run_.model.model.state_dict(), model.run_.model.model.state_dict()
        assert all(torch.equal(state[key], again[key]) for key in state)


def test_importing_paretoda_imports_no_torch():
    code = "import sys, paretoda; assert not {'torch', 'sklearn', 'scipy'} & set(sys.modules), dir(paretoda)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_export_is_there():
    import paretoda

    for name in paretoda.__all__:
        assert getattr(paretoda, name) is not None
