import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from paretoda.data.scaling import fit_scaling, fit_z_scores
from paretoda.data.transforms import transform_from_json
from paretoda.errors import DataError

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(50, 4)) * [1, 10, 0.01, 5] + [0, 5, 100, -3]).astype(np.float32)
Z = (RNG.normal(size=(40, 4)) * 3 + 7).astype(np.float32)


def test_z_scores_are_those_of_scikit_learn() -> None:
    oracle = StandardScaler().fit(X.astype(np.float64)).transform(X.astype(np.float64))
    assert np.allclose(fit_z_scores(X).evaluate(X).numpy(), oracle, atol=2e-3)  # float32 next to a mean of 100 / 0.01


@given(st.floats(-1e6, 1e6, width=32))
def test_a_constant_feature_becomes_zero(value: float) -> None:
    x = np.full((7, 2), value, dtype=np.float32)
    assert fit_z_scores(x).evaluate(x).abs().max() <= 1e-6 * max(1.0, abs(value))


def test_each_scaling_uses_the_statistics_that_it_names() -> None:
    own = [fit_z_scores(X), fit_z_scores(Z)]
    both = fit_z_scores(np.concatenate([X, Z]))
    expected = {"per-domain": own, "joint": [both, both], "source": [own[0], own[0]]}
    for scaling, transforms in expected.items():
        for found, wanted in zip(fit_scaling(scaling, X, Z), transforms, strict=True):
            assert torch.equal(found.mean, wanted.mean)
            assert torch.equal(found.std, wanted.std)
    for transform in fit_scaling("none", X, Z):
        assert (transform.evaluate(Z).numpy() == Z).all()


def test_a_scaling_survives_storage_and_augments_nothing() -> None:
    transform = fit_z_scores(X)
    stored = json.loads(json.dumps(transform.to_json()))
    again = transform_from_json(stored, transform.tensors())
    assert torch.equal(again.evaluate(X), transform.evaluate(X))
    assert torch.equal(again.train(X, torch.Generator()), transform.evaluate(X))


def test_other_widths_are_refused() -> None:
    with pytest.raises(DataError, match="the model takes 4 features"):
        fit_z_scores(X).evaluate(X[:, :3])
