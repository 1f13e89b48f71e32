import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from paretoda.data.scaling import fit_scaling, fit_z_scores, principal_axes
from paretoda.data.settings import PairSettings
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


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 8))
def test_principal_axes_are_the_singular_vectors_scaled_to_mean_square_one(seed: int, width: int, wanted: int) -> None:
    k = min(wanted, width)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(40, width, generator=generator, dtype=torch.float64) * torch.linspace(1, 5, width)
    axes = principal_axes(rows, k)
    assert (rows @ axes).square().mean().item() == pytest.approx(1)
    vectors = torch.linalg.svd(rows, full_matrices=False).Vh[:k]
    unit = axes / axes.norm(dim=0)
    assert (unit.T @ vectors.T).abs().diagonal().numpy() == pytest.approx(np.ones(k), abs=1e-6)
    assert torch.allclose(unit.T @ unit, torch.eye(k, dtype=torch.float64), atol=1e-9)
    assert (axes.gather(0, axes.abs().argmax(0, keepdim=True)) > 0).all()


@pytest.mark.parametrize("flat", [False, True])
def test_principal_axes_of_very_wide_rows_are_nearly_the_best(flat: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(300, 2500, generator=generator)
    if not flat:  # a few strong directions, which must be found exactly
        rows = rows * 0.01 + torch.randn(300, 8, generator=generator) @ torch.randn(8, 2500, generator=generator)
    axes = principal_axes(rows, 8)
    assert (rows @ axes).square().mean().item() == pytest.approx(1, rel=1e-4)
    unit = axes / axes.norm(dim=0)
    assert torch.allclose(unit.T @ unit, torch.eye(8), atol=1e-4)
    best = torch.linalg.svd(rows, full_matrices=False)
    found = (rows @ unit).square().sum() / best.S[:8].square().sum()
    assert found > (0.99 if flat else 0.99999)
    assert torch.equal(axes, principal_axes(rows, 8))


def test_components_are_of_both_domains_and_survive_a_file() -> None:
    first, second = fit_scaling("per-domain", X, Z, components=2)
    assert first.axes is not None
    assert second.axes is not None
    assert torch.equal(first.axes, second.axes)
    assert first.width == 2
    assert first.evaluate(X).shape == (50, 2)
    z_scores = fit_scaling("per-domain", X, Z)[1].evaluate(Z)
    unit = z_scores / z_scores.square().sum(1, keepdim=True).sqrt()
    assert torch.allclose(second.evaluate(Z), unit @ first.axes, atol=1e-6)
    again = transform_from_json(json.loads(json.dumps(first.to_json())), first.tensors())
    assert torch.equal(again.evaluate(X), first.evaluate(X))
    for enough in (0, 4, 99):
        assert all(transform.axes is None for transform in fit_scaling("per-domain", X, Z, components=enough))


def test_components_of_a_sample_do_not_depend_on_the_length_of_its_z_scores() -> None:
    first, _ = fit_scaling("per-domain", X, Z, components=2)
    mean = first.mean.numpy()
    longer = (mean + 1000 * (X - mean)).astype(np.float32)
    assert torch.allclose(first.evaluate(longer), first.evaluate(X), atol=1e-4)
    assert torch.equal(first.evaluate(mean[None]), torch.zeros(1, 2))  # no length to divide by


def test_a_file_without_the_mark_of_unit_rows_is_read_as_it_was_written() -> None:
    first, _ = fit_scaling("per-domain", X, Z, components=2)
    older = {name: value for name, value in first.to_json().items() if name != "unit_rows"}
    assert older != first.to_json()
    assert first.axes is not None
    read = transform_from_json(older, first.tensors())
    assert torch.allclose(read.evaluate(X), fit_z_scores(X).evaluate(X) @ first.axes)
    with pytest.raises(DataError, match="cannot be read"):
        transform_from_json({**older, "unit_rows": "yes"}, first.tensors())


@pytest.mark.parametrize("axes", [torch.ones(3, 2), torch.ones(4, 3), torch.ones(4, 2).double(), None])
def test_axes_that_do_not_fit_are_refused(axes: torch.Tensor | None) -> None:
    first, _ = fit_scaling("per-domain", X, Z, components=2)
    tensors = {**first.tensors(), "axes": axes}
    if axes is None:
        del tensors["axes"]
    with pytest.raises(DataError, match="cannot be read"):
        transform_from_json(first.to_json(), tensors)


def test_the_number_of_components_grows_with_the_classes() -> None:
    assert PairSettings(components=None).count_components(7) == 128
    assert PairSettings(components=None).count_components(65) == 780
    assert PairSettings(components=0).count_components(65) == 0
    assert PairSettings(components=50).count_components(65) == 50


def test_features_that_float32_cannot_square_are_not_left_unscaled():
    huge = np.full((4, 2), 1e20, dtype=np.float32)
    for pair in ((huge, X[:4, :2]), (X[:4, :2], -huge)):
        with pytest.raises(DataError, match=r"the features reach 1e\+20, .* leave out --scaling none"):
            fit_scaling("none", *pair)
        assert all(transform.evaluate(pair[0]).isfinite().all() for transform in fit_scaling("per-domain", *pair))
