"""Kernels and the three estimators of the squared maximum mean discrepancy: closed forms, bias, constants."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.objectives.parts.mmd import adaptive_gaussians, gaussian, squared_discrepancy, squared_distances

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 6))


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def of(source, target, estimator, variance=1.0):
    kernel = gaussian(squared_distances(torch.cat([source, target])), variance)
    return squared_discrepancy(kernel, len(source), estimator).item()


def drawn(size, seed, width=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, width, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(("estimator", "expected"), [("u", 0.768906), ("v", 1.162376), ("linear", 0.595422)])
def test_the_values_of_the_specification(estimator, expected):
    assert of(column(0, 1), column(2, 3), estimator) == pytest.approx(expected, abs=1e-6)


def test_the_linear_estimator_pairs_every_sample_with_the_next_and_the_last_with_the_first():
    source, target = drawn(4, 0), drawn(4, 1)

    def k(x, y):
        return math.exp(-(x - y).square().sum().item() / 2)

    terms = [
        k(source[i], source[j]) + k(target[i], target[j]) - k(source[i], target[j]) - k(source[j], target[i])
        for i, j in [(0, 1), (1, 2), (2, 3), (3, 0)]
    ]
    assert of(source, target, "linear") == pytest.approx(sum(terms) / 4)


@pytest.mark.parametrize(("estimator", "n"), [("u", 2), ("u", 3), ("linear", 2), ("linear", 3)])
def test_over_all_batches_that_could_be_drawn_the_unbiased_estimators_are_right_and_the_other_is_too_large(
    estimator, n
):
    source, target = (0.0, 1.5, 4.0), (1.0, 2.0, 7.0)
    batches = [
        (column(*one), column(*other))
        for one in itertools.product(source, repeat=n)
        for other in itertools.product(target, repeat=n)
    ]
    truth = of(column(*source), column(*target), "v")
    assert sum(of(*batch, estimator) for batch in batches) / len(batches) == pytest.approx(truth)
    assert sum(of(*batch, "v") for batch in batches) / len(batches) > truth + 0.1


@given(SIZES, st.integers(0, 1000), st.floats(0.1, 10))
def test_the_v_statistic_is_never_negative(sizes, seed, variance):
    assert of(drawn(sizes[0], seed), drawn(sizes[1], seed + 1), "v", variance) >= -1e-12


@given(st.integers(1, 6), st.integers(0, 1000))
def test_between_equal_batches_the_v_statistic_is_zero(n, seed):
    rows = drawn(n, seed)
    assert of(rows, rows, "v") == pytest.approx(0, abs=1e-12)


@given(SIZES, st.integers(0, 1000))
def test_the_domains_may_differ_in_size_and_change_places(sizes, seed):
    source, target = drawn(sizes[0], seed), drawn(sizes[1], seed + 1)
    for estimator in ("u", "v"):
        assert of(source, target, estimator) == pytest.approx(of(target, source, estimator), abs=1e-12)


def test_a_lone_sample_has_no_pairs():
    assert of(column(0.0), column(1.0), "u") == pytest.approx(-2 * math.exp(-0.5))
    assert of(column(0.0), column(1.0, 3.0), "u") == pytest.approx(
        math.exp(-2) - math.exp(-0.5) - math.exp(-4.5), abs=1e-12
    )


def test_the_linear_estimator_refuses_domains_of_different_size():
    with pytest.raises(ValueError, match="as many source as target samples, got 2 and 3"):
        of(drawn(2, 0), drawn(3, 1), "linear")


@given(st.integers(1, 7), st.integers(1, 5), st.integers(0, 1000))
def test_squared_distances_are_those_of_all_pairs(n, width, seed):
    rows = drawn(n, seed, width)
    expected = (rows.unsqueeze(0) - rows.unsqueeze(1)).square().sum(2)
    torch.testing.assert_close(squared_distances(rows), expected, rtol=1e-9, atol=1e-12)


def test_far_from_the_origin_distances_are_not_lost():
    rows = (drawn(6, 0) + 1e3).float()
    expected = (rows.unsqueeze(0) - rows.unsqueeze(1)).square().sum(2)
    torch.testing.assert_close(squared_distances(rows), expected, rtol=1e-4, atol=1e-4)


def test_rounding_makes_no_distance_negative():
    rows = drawn(40, 0).float().repeat_interleave(2, 0)
    assert (squared_distances(rows) >= 0).all()


def test_the_bandwidth_is_the_mean_over_all_pairs_with_the_diagonal():
    found = adaptive_gaussians(squared_distances(column(0, 2)))
    assert found[0, 0].item() == 5
    assert found[0, 1].item() == pytest.approx(sum(math.exp(-1 / scale) for scale in (0.125, 0.25, 0.5, 1, 2)))


def test_the_bandwidth_is_a_constant_to_the_gradient():
    rows = drawn(5, 0).requires_grad_()
    distances = squared_distances(rows)
    mean = distances.mean().item()
    adaptive = torch.autograd.grad(adaptive_gaussians(distances, [0.5, 2.0])[:2, 2:].sum(), rows, retain_graph=True)
    fixed = gaussian(distances, 0.5 * mean) + gaussian(distances, 2 * mean)
    torch.testing.assert_close(adaptive[0], torch.autograd.grad(fixed[:2, 2:].sum(), rows)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_that_are_all_alike_have_a_kernel_of_ones_and_no_gradient(dtype):
    rows = torch.full((4, 3), 0.7, dtype=dtype, requires_grad=True)
    kernel = adaptive_gaussians(squared_distances(rows))
    torch.testing.assert_close(kernel, torch.full((4, 4), 5.0, dtype=dtype))
    assert not torch.autograd.grad(kernel[:2, 2:].sum(), rows)[0].any()
