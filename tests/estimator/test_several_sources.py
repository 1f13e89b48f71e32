"""Positive domains are sources of their own, unless they are pooled."""

import numpy as np
import pytest

from paretoda.estimator import ParetoDAClassifier, ParetoDATransformer, scorer


@pytest.fixture
def three(toy):
    """Sources 2 and 5, the second far away, and a target."""
    domain = np.where(toy.domain > 0, np.where(np.arange(150) % 2, 2, 5), -1)
    x = toy.x + 10.0 * (domain == 5)[:, None]
    return x, toy.y, domain, toy.truth


def test_each_positive_domain_is_a_source_with_its_own_losses_and_scaling(three, small):
    x, y, domain, truth = three
    model = ParetoDAClassifier(**{**small, "steps": 60}).fit(x, y, domain)
    assert model.source_domains_ == [2, 5]
    assert "alignment-2" in model.history_[0]["losses"]
    for number in (2, 5):
        assert model.score(x[domain == number], truth[domain == number], domain[domain == number]) > 0.9
    far = model.run_.source_models[1].transform.mean - model.run_.source_models[0].transform.mean
    np.testing.assert_allclose(far, 10, atol=4)
    together = model.predict(x, domain)
    for number in (-1, 2, 5):
        alone = model.predict(x[domain == number], domain[domain == number])
        np.testing.assert_array_equal(together[domain == number], alone)
    assert scorer("source-risk")(model, x, y, domain) > -1.0
    with pytest.raises(ValueError, match="sample_domain has the source 3, which was not there in fit"):
        model.predict(x, np.full(150, 3))


def test_pooled_sources_are_one_whatever_their_numbers(three, small):
    x, y, domain, _ = three
    pooled = ParetoDAClassifier(sources="pooled", **small).fit(x, y, domain)
    one = ParetoDAClassifier(**small).fit(x, y, np.where(domain > 0, 1, -1))
    np.testing.assert_array_equal(pooled.decision_function(x, domain), one.decision_function(x, np.sign(domain)))
    assert pooled.source_domains_ == [1]
    assert "alignment" in pooled.history_[0]["losses"]


def test_the_transformer_takes_several_sources_and_missing_classes(three, small):
    x, y, domain, _ = three
    kept = (domain != 5) | (y != 2)  # the second source lacks a class
    encoder = ParetoDATransformer(**small)
    assert encoder.fit_transform(x[kept], y[kept], domain[kept]).shape == (kept.sum(), 8)
    assert encoder.source_domains_ == [2, 5]
