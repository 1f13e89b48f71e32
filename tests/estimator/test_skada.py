"""The estimators inside skada's pipelines, scorers and splits."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from paretoda import ParetoDAClassifier, ParetoDATransformer
from paretoda.estimator import scorer

LABEL_FREE = (
    "PredictionEntropyScorer",
    "SoftNeighborhoodDensity",
    "DeepEmbeddedValidation",
    "CircularValidation",
    "MixValScorer",
    "MaNoScorer",
)


@pytest.fixture
def skada():
    found = pytest.importorskip("skada")
    pytest.importorskip("skada.metrics")
    sklearn.set_config(enable_metadata_routing=True)  # as its import does, the first time
    return found


@pytest.fixture
def small(small):
    """Enough steps to be right on the whole source, and not so sure that skada's constant in logarithms shows."""
    return {**small, "steps": 40, "target_loss": "tcm+propagation"}


@pytest.fixture
def fitted(skada, toy, small):
    model = skada.make_da_pipeline(StandardScaler(), ParetoDAClassifier(**small).set_score_request(sample_weight=True))
    return model.fit(toy.x, toy.y.copy(), sample_domain=toy.domain)


def test_a_pipeline_of_theirs_fits_what_fit_alone_does(fitted, toy, small):
    scale = StandardScaler().fit(toy.x)
    alone = ParetoDAClassifier(**small).fit(scale.transform(toy.x), toy.y, toy.domain)
    target = toy.domain < 0
    there = fitted.predict_proba(toy.x[target], sample_domain=toy.domain[target])
    assert np.array_equal(there, alone.predict_proba(scale.transform(toy.x[target])))
    source = fitted.predict_proba(toy.x[~target], sample_domain=toy.domain[~target], allow_source=True)
    assert np.array_equal(source, alone.predict_proba(scale.transform(toy.x[~target]), toy.domain[~target]))
    assert fitted.score(toy.x[target], toy.truth[target], sample_domain=toy.domain[target]) > 0.9


def test_their_scorers_score_ours_and_say_what_we_would(skada, fitted, toy):
    for name in LABEL_FREE:
        assert np.isfinite(getattr(skada.metrics, name)()(fitted, toy.x, toy.y, sample_domain=toy.domain)), name
    target = toy.domain < 0
    accuracy = fitted.score(toy.x[target], toy.truth[target])
    supervised = skada.metrics.SupervisedScorer()
    assert supervised(fitted, toy.x, toy.y, sample_domain=toy.domain, target_labels=toy.truth) == accuracy
    entropy = skada.metrics.PredictionEntropyScorer()(fitted, toy.x, toy.y, sample_domain=toy.domain)
    ours = scorer("entropy")(fitted, toy.x, toy.y, sample_domain=toy.domain)
    assert 3 * entropy == pytest.approx(ours, rel=1e-4)  # theirs is also divided by the number of classes
    weighted = skada.metrics.ImportanceWeightedScorer()(fitted, toy.x, toy.y, sample_domain=toy.domain)
    assert weighted == 1  # no source row is wrong, whatever its weight


def test_cross_validation_over_splits_of_theirs(skada, toy, small):
    model = skada.make_da_pipeline(skada.PerDomain(StandardScaler()), ParetoDAClassifier(**small))
    found = cross_validate(
        model,
        toy.x,
        toy.y.copy(),
        params={"sample_domain": toy.domain},
        cv=skada.model_selection.SourceTargetShuffleSplit(n_splits=2, test_size=0.3, random_state=0),
        scoring={"theirs": skada.metrics.PredictionEntropyScorer(), "ours": scorer("entropy")},
        error_score="raise",
    )
    assert 3 * found["test_theirs"] == pytest.approx(found["test_ours"], rel=1e-4)


def test_our_scorers_look_into_their_pipelines(skada, toy, small):
    model = skada.make_da_pipeline(skada.PerDomain(StandardScaler()), ParetoDAClassifier(**small))
    model.fit(toy.x, toy.y.copy(), sample_domain=toy.domain)
    scaled = model[:-1].transform(toy.x, sample_domain=toy.domain)
    for name in ("im", "source-risk"):
        inside = scorer(name)(model[-1].base_estimator_, scaled, toy.y, sample_domain=toy.domain)
        assert scorer(name)(model, toy.x, toy.y, sample_domain=toy.domain) == inside


def test_our_features_feed_their_classifiers(skada, toy, small):
    model = skada.make_da_pipeline(
        ParetoDATransformer(**small | {"steps": 12}), skada.SelectSource(LogisticRegression())
    )
    model.fit(toy.x, toy.y.copy(), sample_domain=toy.domain)
    target = toy.domain < 0
    assert model.score(toy.x[target], toy.truth[target], sample_domain=toy.domain[target]) > 0.9


def test_weights_of_rows_count_in_the_score(toy, small):
    model = ParetoDAClassifier(**small).fit(toy.x, toy.y, toy.domain)
    answers = np.where(np.arange(60) < 15, (model.predict(toy.xt) + 1) % 3, model.predict(toy.xt))
    assert model.score(toy.xt, answers) == 0.75
    assert model.score(toy.xt, answers, sample_weight=np.arange(60) >= 15) == 1
